package main

import (
	"archive/zip"
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// twice is the target that is built in the tests. make cross builds it anyway, with the same flags.
var twice = target{"windows", "amd64"}

func testMaker(t *testing.T, root string) *maker {
	t.Helper()
	return &maker{root: root, version: "v0", targets: []target{twice}, out: t.Output()}
}

// TestAReleaseIsTheSameWhereverItIsBuilt builds one from the checkout, and one from a copy of it elsewhere.
func TestAReleaseIsTheSameWhereverItIsBuilt(t *testing.T) {
	names, err := sources(t.Context(), "../..")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	if err := os.CopyFS(elsewhere, only{os.DirFS("../.."), names}); err != nil {
		t.Fatal(err)
	}
	var sums []string
	for _, root := range []string{"../..", elsewhere} {
		dir := t.TempDir()
		if err := testMaker(t, root).dist(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, string(text))
		has := filesOf(t, filepath.Join(dir, "listwatch-v0-windows-amd64.zip"))
		for name, want := range map[string]string{"viz.exe": "MZ", "LICENSE": "", "THIRD-PARTY.txt": "go.etcd.io/etcd/server/v3@"} {
			if !strings.Contains(has[name], want) {
				t.Errorf("%s: %.60q, without %q", name, has[name], want)
			}
		}
		if at, err := filepath.Abs(root); err != nil || strings.Contains(has["viz.exe"], at) {
			t.Errorf("the binary says that it was built in %s, %v", at, err)
		}
	}
	if sums[0] != sums[1] || !strings.HasSuffix(sums[0], "  listwatch-v0-windows-amd64.zip\n") {
		t.Errorf("got %q and %q", sums[0], sums[1])
	}
}

// filesOf returns what an archive has.
func filesOf(t *testing.T, name string) map[string]string {
	t.Helper()
	reader, err := zip.OpenReader(name)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	files := map[string]string{}
	for _, each := range reader.File {
		in, err := each.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		files[each.Name] = string(text)
	}
	return files
}

func TestEveryModuleThatIsHandedOutBringsItsLicence(t *testing.T) {
	m := testMaker(t, "../..")
	got, err := m.notices(t.Context(), twice, viz)
	if err != nil {
		t.Fatal(err)
	}
	text := string(thirdParty(got))
	for _, want := range []string{"go.etcd.io/etcd/server/v3@", "k8s.io/apimachinery@", "go1.", "Apache License", "Redistribution and use"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q", want)
		}
	}
	if strings.Contains(text, "listwatch@") {
		t.Error("our own licence is listed as another's")
	}
	if found, err := noticesIn("example.com/none", t.TempDir()); err != nil || len(found) > 0 {
		t.Errorf("an empty folder has %v, %v", found, err)
	}
}

// TestEveryToolCanBeBuiltForEverySystem asks the go command for each tool's packages: it refuses a tool that a system cannot have.
func TestEveryToolCanBeBuiltForEverySystem(t *testing.T) {
	m := testMaker(t, "../..")
	for system := range strings.SplitSeq(allTargets, ",") {
		goos, goarch, _ := strings.Cut(system, "/")
		for _, p := range tools {
			if _, err := m.goFor(t.Context(), target{goos, goarch}, p, "list", "-deps"); err != nil {
				t.Errorf("%s for %s: %v", p.name, system, err)
			}
		}
	}
}

var href = regexp.MustCompile(`href="([^"]+)"`)

// TestThePagesOfABagLeadToWhatItHas: START.html names every release, and no page leads out of the bag.
func TestThePagesOfABagLeadToWhatItHas(t *testing.T) {
	m := testMaker(t, "../..")
	m.targets = append(m.targets, target{"linux", "arm64"})
	name := filepath.Join(t.TempDir(), "bag.zip")
	bag, err := newArchive(name, zip.Store)
	if err != nil {
		t.Fatal(err)
	}
	if err := bag.close(m.addPages(bag)); err != nil {
		t.Fatal(err)
	}
	files := filesOf(t, name)
	packed := []string{sourcesName, "releases/SHA256SUMS", "site/index.html"}
	for _, each := range m.targets {
		packed = append(packed, "releases/listwatch-v0-"+each.String()+".zip", "tools/tools-"+each.String()+".zip")
	}
	for name, text := range files {
		for _, match := range href.FindAllStringSubmatch(text, -1) {
			if _, page := files[match[1]]; !page && !slices.Contains(packed, match[1]) {
				t.Errorf("%s leads to %s, which is not in the bag", name, match[1])
			}
		}
		if strings.Contains(text, "](") || !strings.Contains(text, "<title>") {
			t.Errorf("%s is no page: %.300s", name, text)
		}
	}
	for _, each := range packed {
		if !strings.Contains(files[startName], `href="`+each+`"`) {
			t.Errorf("%s does not lead to %s", startName, each)
		}
	}
}

// TestWhatAProxyIsAskedForIsThere: the go command finds the modules under these names.
func TestWhatAProxyIsAskedForIsThere(t *testing.T) {
	if got, want := proxyName("github.com/NYTimes/gziphandler", "v1.1.1-RC1"), "github.com/!n!y!times/gziphandler/@v/v1.1.1-!r!c1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	m := testMaker(t, "../..")
	dirs, err := m.modules(t.Context())
	for _, each := range []string{".", "internal/compat", "internal/compat/kubeapiserver", "internal/compat/oldkubectl", "internal/tools"} {
		if err != nil || !slices.Contains(dirs, each) {
			t.Errorf("the module in %s is not packed: %v, %v", each, dirs, err)
		}
	}
	for _, dir := range dirs {
		names, err := m.moduleFiles(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path.Join("../..", dir, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		required := regexp.MustCompile(`(?m)^\t(\S+) (v\S+)`).FindAllStringSubmatch(string(text), -1)
		for _, module := range required {
			if module[2] == "v0.0.0" {
				continue // no such version exists: it is replaced
			}
			for _, ending := range []string{".mod", ".info", ".zip"} {
				if name := proxyName(module[1], module[2]) + ending; !slices.Contains(names, name) {
					t.Errorf("%s: %s is not packed", dir, name)
				}
			}
		}
		if len(required) < 20 {
			t.Errorf("%s: go.mod requires %d modules", dir, len(required))
		}
	}
}

func TestAWrongCommandLineIsRefused(t *testing.T) {
	for _, args := range [][]string{nil, {"dist"}, {"burn", "x"}, {"-targets", "linux", "dist", t.TempDir()}, {"-x", "dist", "y"}} {
		if err := run(context.Background(), args, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "usage: bag") {
			t.Errorf("%q: got %v", args, err)
		}
	}
}

// only is a file system without the files that are not named.
type only struct {
	fs.FS
	names []string
}

func (o only) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(o.FS, name)
	return slices.DeleteFunc(entries, func(entry fs.DirEntry) bool {
		at := path.Join(name, entry.Name())
		if entry.IsDir() {
			return !slices.ContainsFunc(o.names, func(each string) bool { return strings.HasPrefix(each, at+"/") })
		}
		return !slices.Contains(o.names, at)
	}), err
}
