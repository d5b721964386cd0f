package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func testMaker(t *testing.T, root string) *maker {
	t.Helper()
	return &maker{root: root, version: "v0", targets: []target{{"windows", "amd64"}}, temp: t.TempDir(),
		out: t.Output()}
}

func TestEveryModuleThatIsHandedOutBringsItsLicence(t *testing.T) {
	m := testMaker(t, "../..")
	text, err := m.licences(t.Context(), m.targets[0], viz)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"go.etcd.io/etcd/server/v3@", "k8s.io/apimachinery@", "go1.", "Apache License",
		"Redistribution and use"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q", want)
		}
	}
	if strings.Contains(text, "listwatch@") {
		t.Error("our own licence is listed as another's")
	}
}

// TestAnArchiveDependsOnItsFilesAlone makes one twice, from files of other times.
func TestAnArchiveDependsOnItsFilesAlone(t *testing.T) {
	var archives [][]byte
	for i := range 2 {
		dir := t.TempDir()
		for _, name := range []string{"b", "a/c"} {
			file := filepath.Join(dir, "in", name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(file, time.Time{}, time.Unix(int64(i)*1e9, 0)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := zipFolder(filepath.Join(dir, "in"), filepath.Join(dir, "out", "x.zip")); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "out", "x.zip"))
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, text)
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two archives of the same files differ")
	}
}

func TestAWrongCommandLineIsRefused(t *testing.T) {
	for _, args := range [][]string{nil, {"dist"}, {"burn", "x"}, {"-targets", "linux", "dist", t.TempDir()},
		{"-x", "dist", "y"}} {
		if err := run(t.Context(), args, io.Discard); err == nil || !strings.Contains(err.Error(), "usage: bag") {
			t.Errorf("%q: got %v", args, err)
		}
	}
}
