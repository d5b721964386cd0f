//go:build !race

package viz

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/parser"
	"github.com/dop251/goja/token"
	"github.com/evanw/esbuild/pkg/api"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// TestNoScriptReadsASentenceBack: no script compares a record's sentence, takes it apart, or looks for something in it.
// Code that needs to know a record reads its fields (log/query.js).
func TestNoScriptReadsASentenceBack(t *testing.T) {
	files, err := filepath.Glob("*/*.js")
	require.True(t, err == nil && len(files) > 40, "%d scripts: %v", len(files), err)
	for _, name := range files {
		source, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.EqualSlices(t, nil, readBack(t, name, string(source)), "%s reads a record's sentence back by", name)
	}
	for _, seeded := range []string{
		`if (sentence(info, r) === "etcd is compacted") f();`,
		`const words = stage.says(r); if (/no leader/.test(words)) f();`,
		`f(this.stage.says(r).includes("410"));`,
		`let text = says(r); const [, rv] = text.split(": ");`,
		`switch (says(r)) { case "": f(); }`,
		`f(/(\d+)$/.exec(says(r)));`,
	} {
		assert.Equal(t, 1, len(readBack(t, "seeded.js", seeded)), "places found in %s", seeded)
	}
	shown := `const text = says(r); say(el, cut(text, 60)); f(says(q.fields) && x);`
	assert.Equal(t, 0, len(readBack(t, "shown.js", shown)), "places where it is only shown")
}

// reads are the methods that read a text, or take one to be read.
var reads = []string{"test", "exec", "includes", "startsWith", "endsWith", "match", "matchAll", "indexOf",
	"lastIndexOf", "split", "search", "slice", "substring", "replace", "at", "charAt", "localeCompare"}

// readBack returns how a script reads sentences back: the methods and operators that are given one.
func readBack(t *testing.T, name, source string) (by []string) {
	t.Helper()
	built := api.Transform(source, api.TransformOptions{Format: api.FormatCommonJS, Target: api.ES2022,
		Supported: map[string]bool{"async-generator": false, "for-await": false, "logical-assignment": false,
			"class-static-blocks": false, "top-level-await": true}})
	require.True(t, len(built.Errors) == 0, "%s: %v", name, built.Errors)
	code := strings.Replace(string(built.Code), "await globalThis", "globalThis", 1) // goja knows none of a module's
	parsed, err := parser.ParseFile(nil, name, code, 0, parser.WithDisableSourceMaps)
	require.NoError(t, err, name)
	held := map[string]bool{} // variables of the script that hold a sentence
	holds := func(n any) (found bool) {
		visit(reflect.ValueOf(n), func(n any) bool {
			switch n := n.(type) {
			case *ast.FunctionLiteral, *ast.ArrowFunctionLiteral:
				return false
			case *ast.CallExpression:
				found = found || slices.Contains([]string{"sentence", "says"}, nameOf(n.Callee)) && !fields(n)
			case *ast.Identifier:
				found = found || held[n.Name.String()]
			}
			return !found
		})
		return found
	}
	visit(reflect.ValueOf(parsed.Body), func(n any) bool {
		switch n := n.(type) {
		case *ast.Binding:
			if id, ok := n.Target.(*ast.Identifier); ok && n.Initializer != nil && holds(n.Initializer) {
				held[id.Name.String()] = true
			}
		case *ast.BinaryExpression:
			compares := n.Operator == token.STRICT_EQUAL || n.Operator == token.EQUAL ||
				n.Operator == token.STRICT_NOT_EQUAL || n.Operator == token.NOT_EQUAL
			if compares && (holds(n.Left) || holds(n.Right)) {
				by = append(by, n.Operator.String())
			}
		case *ast.SwitchStatement:
			if holds(n.Discriminant) {
				by = append(by, "switch")
			}
		case *ast.CallExpression:
			if of, ok := n.Callee.(*ast.DotExpression); ok && slices.Contains(reads, nameOf(of)) &&
				(holds(of.Left) || holds(n.ArgumentList)) {
				by = append(by, nameOf(of))
			}
		}
		return true
	})
	return by
}

// fields reports whether a call is that of query.js, which compares texts with fields.
func fields(call *ast.CallExpression) bool {
	if len(call.ArgumentList) == 0 {
		return true
	}
	return nameOf(call.ArgumentList[0]) == "fields"
}

// nameOf returns the last name of what is called, or of an argument; "" if it has none.
func nameOf(e ast.Expression) string {
	switch e := e.(type) {
	case *ast.Identifier:
		return e.Name.String()
	case *ast.DotExpression:
		return e.Identifier.Name.String()
	case *ast.Optional:
		return nameOf(e.Expression)
	case *ast.OptionalChain:
		return nameOf(e.Expression)
	case *ast.SequenceExpression: // what was imported: (0, x.says)
		return nameOf(e.Sequence[len(e.Sequence)-1])
	}
	return ""
}

// visit calls see for every node of a tree, and goes into those for which it is true.
func visit(v reflect.Value, see func(node any) bool) {
	switch v.Kind() {
	case reflect.Interface:
		visit(v.Elem(), see)
	case reflect.Slice:
		for i := range v.Len() {
			visit(v.Index(i), see)
		}
	case reflect.Pointer:
		if !v.IsNil() && v.Elem().Kind() == reflect.Struct && see(v.Interface()) {
			visit(v.Elem(), see)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() && field.Name != "DeclarationList" {
				visit(v.Field(i), see)
			}
		}
	}
}
