package policy

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// toolsModule is where the version of the generator is pinned.
const toolsModule = "internal/check/tools/go.mod"

var templVersion = regexp.MustCompile(`(?m)github\.com/a-h/templ (v\S+)`)

// checkTemplVersion holds that the generator and the library it generates for are of one version.
func checkTemplVersion(repo *Repo) []Fault {
	library, fault1 := pinned(repo, "go.mod")
	tool, fault2 := pinned(repo, toolsModule)
	if faults := append(fault1, fault2...); len(faults) > 0 {
		return faults
	}
	var faults []Fault
	if library != tool {
		faults = append(faults, fault(toolsModule, 0, "templ is %s here and %s in go.mod", tool, library))
	}
	return faults
}

func pinned(repo *Repo, name string) (string, []Fault) {
	text, err := fs.ReadFile(repo.FS, name)
	if err != nil {
		return "", []Fault{fault(name, 0, "%v", err)}
	}
	match := templVersion.FindSubmatch(text)
	if match == nil {
		return "", []Fault{fault(name, 0, "does not pin templ")}
	}
	return string(match[1]), nil
}

func TestTemplatesAndToolHaveOneVersion(t *testing.T) {
	repo, err := open()
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range checkTemplVersion(repo) {
		t.Error(each)
	}
	other := seeded(t, map[string]string{toolsModule: "require github.com/a-h/templ v0.3.900\n"})
	if faults := checkTemplVersion(other); len(faults) != 1 || faults[0].String() != toolsModule+": templ is v0.3.900 here and v0.3.977 in go.mod" {
		t.Errorf("got %v, want one fault", faults)
	}
}

func TestGeneratedFilesAreFresh(t *testing.T) {
	copied := copyTemplates(t)
	tool := buildTool(t)
	if stale := regenerate(t, tool, copied); len(stale) > 0 {
		t.Errorf("stale: %v: run make generate and commit the result", stale)
	}
	t.Run("a stale file is found", func(t *testing.T) {
		template := firstTemplate(t, copied)
		text, err := os.ReadFile(template)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, "\ntempl seededFault() {\n\t<p>new</p>\n}\n"...)
		if err := os.WriteFile(template, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if stale := regenerate(t, tool, copied); len(stale) != 1 {
			t.Errorf("got %v, want one stale file", stale)
		}
	})
}

// copyTemplates copies what the generator reads and writes into a temporary folder, paths kept.
func copyTemplates(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && name != root {
			return fs.SkipDir
		}
		if filepath.Ext(name) != ".templ" && !strings.HasSuffix(name, "_templ.go") && entry.Name() != "go.mod" {
			return nil
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		target := filepath.Join(dir, relative)
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// buildTool builds the pinned generator.
func buildTool(t *testing.T) string {
	t.Helper()
	tool := filepath.Join(t.TempDir(), "templ")
	if runtime.GOOS == "windows" {
		tool += ".exe"
	}
	build := exec.Command("go", "build", "-modfile="+filepath.FromSlash(toolsModule), "-o", tool, "github.com/a-h/templ/cmd/templ")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the generator: %v\n%s", err, out)
	}
	return tool
}

// regenerate runs the generator in dir and returns the files that are not what they were.
func regenerate(t *testing.T, tool, dir string) []string {
	t.Helper()
	before := generatedIn(t, dir)
	generate := exec.Command(tool, "generate")
	generate.Dir = dir
	if out, err := generate.CombinedOutput(); err != nil {
		t.Fatalf("generate: %v\n%s", err, out)
	}
	after := generatedIn(t, dir)
	var stale []string
	for name, text := range after {
		if !bytes.Equal(before[name], text) {
			stale = append(stale, name)
		}
	}
	for name := range before {
		if after[name] == nil {
			stale = append(stale, name+" (its template is gone)")
		}
	}
	return stale
}

func generatedIn(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := make(map[string][]byte)
	err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_templ.go") {
			return err
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(relative)], err = os.ReadFile(name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func firstTemplate(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "viz", "*", "*.templ"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no templates below %s: %v", dir, err)
	}
	return names[0]
}
