package compat

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	// The modules whose sources are resolved here; the imports keep them pinned in go.mod.
	_ "go.etcd.io/etcd/client/v3"
	_ "go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	_ "k8s.io/apimachinery/pkg/watch"
	_ "k8s.io/apiserver/pkg/storage/cacher"
	_ "k8s.io/client-go/tools/cache"
	_ "k8s.io/utils/buffer"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/text/source"
)

// TestEveryUpstreamLineLeadsToADeclaration resolves the lines of the whole tree, chapters and helpers alike, in the
// modules that go.mod pins.
func TestEveryUpstreamLineLeadsToADeclaration(t *testing.T) {
	tree, err := source.Parse(os.DirFS("../../.."))
	require.NoError(t, err)
	real := realSources(t)
	lines := 0
	for _, pkg := range tree.Packages {
		for _, note := range pkg.Notes() {
			if note.Differs != "" {
				continue
			}
			lines++
			err := note.Err
			if err == nil {
				err = real.resolve(note.Upstream)
			}
			if err != nil {
				t.Errorf("%s:%d: %v", note.File.Path, note.Line, err)
			}
		}
	}
	assert.True(t, lines >= 50, "only %d Upstream lines found: the test looks in the wrong place", lines)
}

func TestAnUpstreamLineThatLeadsNowhereIsFound(t *testing.T) {
	real := realSources(t)
	for line, leads := range map[string]bool{
		"k8s.io/client-go/tools/cache":                                true,
		"k8s.io/client-go/tools/cache/reflector.go":                   true,
		"k8s.io/client-go/tools/cache/reflector.go: Reflector":        true,
		"k8s.io/client-go/tools/cache/reflector.go: (*Reflector).Run": true,
		"k8s.io/client-go/tools/cache: (*Reflector).Run":              true,
		"k8s.io/client-go/tools/cache/store.go: Store.Replace":        true,
		// a generic type
		"k8s.io/client-go/util/workqueue/queue.go: (*Typed).Get":                                true,
		"k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go: cacheWatcher.input":              true, // a field
		"k8s.io/apiserver/pkg/storage/cacher/watch_cache_history.go: defaultLowerBoundCapacity": true, // a constant
		"k8s.io/client-go/tools/cache/no_such_file.go":                                          false,
		// another file
		"k8s.io/client-go/tools/cache/store.go: Reflector": false,
		// a pointer method
		"k8s.io/client-go/tools/cache/reflector.go: (Reflector).Run":   false,
		"k8s.io/client-go/tools/cache/reflector.go: (*Reflector).Walk": false,
		"k8s.io/client-go/tools/nothing":                               false,
		"example.test/module/file.go: Symbol":                          false,
		// tests are no counterpart
		"k8s.io/client-go/tools/cache/reflector_test.go: TestReflectorResyncChan":                   false,
		"k8s.io/apiserver/pkg/storage/cacher/cacher.go: (*Cacher).dispatchEvents":                   true,
		"k8s.io/client-go/util/workqueue/default_rate_limiters.go: TypedBucketRateLimiter.NoMethod": false,
	} {
		upstream, err := source.ParseUpstream(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if err := real.resolve(upstream); (err == nil) != leads {
			t.Errorf("%s: resolve says %v, want it to lead somewhere: %v", line, err, leads)
		}
	}
}

// sources finds declarations in the modules this one is built with.
type sources struct {
	modules map[string]string          // module path to folder
	files   map[string]map[string]bool // file to the symbols it declares, as they stand in Upstream lines
}

func realSources(t *testing.T) *sources {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-json=Path,Dir", "all").Output()
	require.NoError(t, err, "list modules")
	s := &sources{modules: map[string]string{}, files: map[string]map[string]bool{}}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var module struct{ Path, Dir string }
		if err := decoder.Decode(&module); errors.Is(err, io.EOF) {
			return s
		} else if err != nil {
			t.Fatalf("list modules: %v", err)
		}
		if module.Dir != "" {
			s.modules[module.Path] = module.Dir
		}
	}
}

// resolve returns an error unless the file or package exists and declares the symbol.
func (s *sources) resolve(u source.Upstream) error {
	location, err := s.locate(u.Path)
	if err != nil {
		return fmt.Errorf("%s: %w", u, err)
	}
	names := []string{location}
	if path.Ext(u.Path) != ".go" {
		if names, err = filepath.Glob(filepath.Join(location, "*.go")); err != nil || len(names) == 0 {
			return fmt.Errorf("%s: no Go files in %s", u, u.Path)
		}
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		symbols, err := s.symbols(name)
		if err != nil {
			return fmt.Errorf("%s: %w", u, err)
		}
		if u.Name == "" || symbols[u.Symbol()] {
			return nil
		}
	}
	return fmt.Errorf("%s: not declared there", u)
}

// locate returns where a file or package of a pinned module lies.
func (s *sources) locate(importPath string) (string, error) {
	for module := importPath; module != "."; module = path.Dir(module) {
		if dir, ok := s.modules[module]; ok {
			location := filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(importPath, module)))
			_, err := os.Stat(location)
			return location, err
		}
	}
	return "", fmt.Errorf("in no module that go.mod pins")
}

// symbols returns everything a file declares: "Name", "(*Type).Method", "Type.Method", and "Type.Member" for fields and
// interface methods. A method may be named without its pointer only if it has none.
func (s *sources) symbols(name string) (map[string]bool, error) {
	if symbols, ok := s.files[name]; ok {
		return symbols, nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	symbols := map[string]bool{}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			symbols[funcSymbol(decl)] = true
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				specSymbols(symbols, spec)
			}
		}
	}
	s.files[name] = symbols
	return symbols, nil
}

func funcSymbol(decl *ast.FuncDecl) string {
	if decl.Recv == nil {
		return decl.Name.Name
	}
	star, recv := false, decl.Recv.List[0].Type
	for {
		switch expr := recv.(type) {
		case *ast.StarExpr:
			star, recv = true, expr.X
		case *ast.IndexExpr: // Type[T]
			recv = expr.X
		case *ast.IndexListExpr: // Type[K, V]
			recv = expr.X
		case *ast.Ident:
			if star {
				return "(*" + expr.Name + ")." + decl.Name.Name
			}
			return expr.Name + "." + decl.Name.Name
		default:
			return decl.Name.Name
		}
	}
}

func specSymbols(symbols map[string]bool, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			symbols[name.Name] = true
		}
	case *ast.TypeSpec:
		symbols[spec.Name.Name] = true
		var members *ast.FieldList
		switch typ := spec.Type.(type) {
		case *ast.StructType:
			members = typ.Fields
		case *ast.InterfaceType:
			members = typ.Methods
		default:
			return
		}
		for _, member := range members.List {
			for _, name := range member.Names {
				symbols[spec.Name.Name+"."+name.Name] = true
			}
		}
	}
}
