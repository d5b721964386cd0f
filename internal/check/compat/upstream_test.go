package compat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	// These imports keep in go.mod the modules whose sources this test reads.
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

// TestEveryUpstreamLineLeadsToADeclaration checks that each Upstream line names a package, file or symbol that exists.
func TestEveryUpstreamLineLeadsToADeclaration(t *testing.T) {
	tree := require.Value(source.Parse(os.DirFS("../../..")))(t)
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
			assert.True(t, err == nil, "%s:%d: %v", note.File.Path, note.Line, err)
		}
	}
	assert.True(t, lines >= 50, "only %d Upstream lines found: the test looks in the wrong place", lines)
}

func TestAnUpstreamLineThatLeadsNowhereIsFound(t *testing.T) {
	real := realSources(t)
	for line, leads := range map[string]bool{
		"k8s.io/client-go/tools/cache":                                             true,
		"k8s.io/client-go/tools/cache: (*Reflector).Run":                           true,
		"k8s.io/client-go/tools/cache/store.go: Store.Replace":                     true,
		"k8s.io/client-go/util/workqueue/queue.go: (*Typed).Get":                   true, // a generic type
		"k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go: cacheWatcher.input": true, // a field
		"k8s.io/client-go/tools/cache/no_such_file.go":                             false,
		"k8s.io/client-go/tools/cache/store.go: Reflector":                         false, // another file
		"k8s.io/client-go/tools/cache/reflector.go: (Reflector).Run":               false, // a pointer method
		"k8s.io/client-go/tools/cache/reflector.go: (*Reflector).Walk":             false,
		"example.test/module/file.go: Symbol":                                      false,
		"k8s.io/client-go/tools/cache/reflector_test.go: TestReflectorResyncChan":  false, // test files do not count
	} {
		err := real.resolve(require.Value(source.ParseUpstream(line))(t))
		assert.Equal(t, leads, err == nil, "%s: resolve says %v, want it to lead somewhere: %v", line, err, leads)
	}
}

// sources finds declarations in the modules of this build and in k8s.io/kubernetes.
type sources struct {
	modules map[string]string       // module path to folder
	folders map[string]*source.Tree // the folders read so far
}

func realSources(t *testing.T) *sources {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-json=Path,Dir", "all").Output()
	require.NoError(t, err, "list modules")
	kubernetes := exec.Command("go", "list", "-m", "-json=Path,Dir", "k8s.io/kubernetes")
	kubernetes.Dir = "kubernetes" // only this folder's go.mod requires k8s.io/kubernetes
	more, err := kubernetes.Output()
	require.NoError(t, err, "list modules of kubernetes")
	out = append(out, more...)
	s := &sources{modules: map[string]string{}, folders: map[string]*source.Tree{}}
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

// onPointer matches a method with a pointer receiver.
var onPointer = regexp.MustCompile(`(?m)^func \((?:\w+ )?\*`)

// resolve returns an error unless the file or package exists and declares the symbol. The symbol of a method begins
// with "(*" if and only if the receiver is a pointer.
func (s *sources) resolve(u source.Upstream) error {
	location, err := s.locate(u.Path)
	if err != nil {
		return fmt.Errorf("%s: %w", u, err)
	}
	dir, file, symbol := location, "", strings.NewReplacer("(", "", "*", "", ")", "").Replace(u.Symbol)
	if path.Ext(u.Path) == ".go" {
		dir, file = filepath.Split(location)
	}
	tree, err := s.in(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", u, err)
	}
	for _, pkg := range tree.Packages {
		decl, err := pkg.Find(symbol, file)
		if symbol == "" || err == nil && onPointer.MatchString(decl.Src) == strings.HasPrefix(u.Symbol, "(*") {
			return nil
		}
	}
	return fmt.Errorf("%s: not declared there", u)
}

// in parses the Go files of a folder, without subfolders and tests.
func (s *sources) in(dir string) (*source.Tree, error) {
	if tree := s.folders[dir]; tree != nil {
		return tree, nil
	}
	files := fstest.MapFS{}
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, name := range names {
		if text, readErr := os.ReadFile(name); !strings.HasSuffix(name, "_test.go") {
			files[filepath.Base(name)], err = &fstest.MapFile{Data: text}, errors.Join(err, readErr)
		}
	}
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no Go files in %s: %w", dir, err)
	}
	s.folders[dir], err = source.Parse(files)
	return s.folders[dir], err
}

// locate returns the path of a file or package of a pinned module.
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
