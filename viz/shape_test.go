//go:build !race

package viz

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/parser"
	"github.com/dop251/goja/token"
	"github.com/evanw/esbuild/pkg/api"
	"github.com/go-sourcemap/sourcemap"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

const (
	maxLines   = 60 // of a function
	maxChanged = 8  // variables that change, and that functions within share
)

// TestAFunctionFitsAScreen: no function has more than 60 lines, and none shares more than eight variables that change
// with the functions in it.
func TestAFunctionFitsAScreen(t *testing.T) {
	files, err := filepath.Glob("*/*.js")
	require.True(t, err == nil && len(files) > 40, "%d scripts: %v", len(files), err)
	for _, name := range files {
		source := require.Value(os.ReadFile(name))(t)
		code := strings.Replace(string(source), "await globalThis", "globalThis", 1) // goja knows none of a module's
		built := api.Transform(code, api.TransformOptions{
			Format: api.FormatCommonJS, Sourcemap: api.SourceMapExternal, Target: api.ES2022,
			Supported: map[string]bool{"async-generator": false, "for-await": false,
				"logical-assignment": false, "class-static-blocks": false},
		})
		require.True(t, len(built.Errors) == 0, "%s: %v", name, built.Errors)
		lines := require.Value(sourcemap.Parse("", built.Map))(t)
		parsed, err := parser.ParseFile(nil, name, string(built.Code), 0, parser.WithDisableSourceMaps)
		require.NoError(t, err, name)
		line := func(at file.Idx) int {
			position := parsed.File.Position(int(at) - 1)
			_, _, line, _, _ := lines.Source(position.Line, position.Column-1)
			return line
		}
		s := &shape{}
		s.begin(nil)
		s.walk(reflect.ValueOf(parsed.Body))
		s.end()
		for _, f := range s.functions {
			from, to := 0, 0
			if f.node != nil {
				from, to = line(f.node.Idx0()), line(f.node.Idx1()-1)
			}
			n := to - from + 1
			if ok := n <= maxLines && len(f.shared) <= maxChanged; !ok {
				t.Errorf("%s:%d: %d lines; changed and shared: %v", name, from, n, f.shared)
			}
		}
	}
}

// TestTypesAreMeant: no script leaves the checker out, and few places have any type.
func TestTypesAreMeant(t *testing.T) {
	files := require.Value(filepath.Glob("*/*.js"))(t)
	anything := 0
	for _, name := range files {
		source := require.Value(os.ReadFile(name))(t)
		text := string(source)
		for _, out := range []string{"@ts-nocheck", "@ts-ignore", "@ts-expect-error", "{*}"} {
			assert.False(t, strings.Contains(text, out), "%s has %s", name, out)
		}
		for _, form := range []string{"{any}", ": any", "<any", "any>", ", any", "any[]"} {
			for line := range strings.Lines(text) {
				if strings.Contains(line, "/**") || strings.HasPrefix(strings.TrimSpace(line), "* @") {
					anything += strings.Count(line, form)
				}
			}
		}
	}
	assert.True(t, anything <= 20, "%d places have any type, want 20 at most", anything)
}

// TestWhatKnowsNoDocumentRunsWithoutOne: the checker holds that those scripts name nothing of a document, and they load
// in an engine that has none.
func TestWhatKnowsNoDocumentRunsWithoutOne(t *testing.T) {
	written, err := os.ReadFile("tsconfig.pure.json")
	require.NoError(t, err)
	_, list, _ := strings.Cut(string(written), `"include":`)
	var include []string
	require.NoError(t, json.Unmarshal([]byte(strings.TrimSuffix(strings.TrimSpace(list), "}")), &include))
	modules := map[string]string{}
	for _, pattern := range include {
		names, err := filepath.Glob(pattern)
		require.True(t, err == nil && len(names) > 0, "%s: %v", pattern, err)
		for _, name := range names {
			if filepath.Ext(name) == ".js" {
				modules[fmt.Sprintf("m%d", len(modules))] = filepath.ToSlash(name)
			}
		}
	}
	require.True(t, len(modules) >= 20, "%d scripts", len(modules))
	e := newEngine(t, modules)
	n := run[int](t, e, "Object.keys(page).length")
	assert.True(t, n == len(modules), "%d modules, want %d", n, len(modules))
}

// shape is a walk through a program: the functions that it has come through, and the ones that it is in.
type shape struct {
	functions, in []*function
}

type function struct {
	node         ast.Node        // nil: the module
	declared     map[string]bool // and whether it changes
	uses, within map[string]bool // the names that it uses, and that functions in it use
	shared       []string        // of what is declared and changes: what a function within uses
}

func (s *shape) begin(node ast.Node) {
	s.in = append(s.in, &function{node, map[string]bool{}, map[string]bool{}, map[string]bool{}, nil})
}

// end resolves the names of the function that ends: what it has not declared is of one around it.
func (s *shape) end() {
	last := len(s.in) - 1
	f := s.in[last]
	s.functions, s.in = append(s.functions, f), s.in[:last]
	for name := range f.within {
		if f.declared[name] {
			f.shared = append(f.shared, name)
		}
		f.uses[name] = true
	}
	slices.Sort(f.shared)
	if last == 0 {
		return
	}
	for name := range f.uses {
		if _, own := f.declared[name]; !own {
			s.in[last-1].within[name] = true
		}
	}
}

// declare notes the names that a binding gives, and whether what they name may change.
func (s *shape) declare(v reflect.Value, changes bool) {
	s.names(v, func(name string) { s.in[len(s.in)-1].declared[name] = changes })
}

// names calls note for every identifier of a binding.
func (s *shape) names(v reflect.Value, note func(string)) {
	if v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		if id, ok := v.Interface().(*ast.Identifier); ok && id != nil {
			note(id.Name.String())
			return
		}
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			s.names(v.Index(i), note)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			switch field := v.Type().Field(i); field.Name {
			case "Initializer", "Key": // is no name
			case "Name": // of a short property
				note(v.Field(i).Interface().(ast.Identifier).Name.String())
			default:
				s.names(v.Field(i), note)
			}
		}
	}
}

func (s *shape) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		s.walk(v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			s.walk(v.Index(i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			s.node(v)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			s.walk(v.Field(i))
		}
	}
}

func (s *shape) node(v reflect.Value) {
	switch node := v.Interface().(type) {
	case *file.File:
	case *ast.Identifier:
		s.in[len(s.in)-1].uses[node.Name.String()] = true
	case *ast.DotExpression:
		s.walk(reflect.ValueOf(node.Left))
	case *ast.PropertyShort:
		s.in[len(s.in)-1].uses[node.Name.Name.String()] = true
	case *ast.LexicalDeclaration:
		for _, each := range node.List {
			s.declare(reflect.ValueOf(each.Target), node.Token == token.LET)
		}
		s.walk(reflect.ValueOf(node.List))
	case *ast.FunctionDeclaration:
		s.in[len(s.in)-1].declared[node.Function.Name.Name.String()] = false
		s.walk(reflect.ValueOf(node.Function))
	case *ast.FunctionLiteral:
		s.begin(node)
		s.declare(reflect.ValueOf(node.ParameterList.List), false)
		s.walk(reflect.ValueOf(node.ParameterList))
		s.walk(reflect.ValueOf(node.Body))
		s.end()
	case *ast.ArrowFunctionLiteral:
		s.begin(node)
		s.declare(reflect.ValueOf(node.ParameterList.List), false)
		s.walk(reflect.ValueOf(node.ParameterList))
		s.walk(reflect.ValueOf(node.Body))
		s.end()
	default:
		s.walk(v.Elem())
	}
}
