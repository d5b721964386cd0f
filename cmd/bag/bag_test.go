package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

func testMaker(t *testing.T, root string) *maker {
	t.Helper()
	return &maker{root: root, version: "v0", targets: []target{{"windows", "amd64"}}, temp: t.TempDir(),
		out: t.Output()}
}

func TestEveryModuleThatIsHandedOutBringsItsLicence(t *testing.T) {
	m := testMaker(t, "../..")
	text, err := m.licences(t.Context(), m.targets[0], viz)
	require.NoError(t, err)
	file := filepath.Join(m.temp, "machine.txt")
	require.NoError(t, m.machineLicences(t.Context(), file))
	inTab, err := os.ReadFile(file)
	require.NoError(t, err)
	for text, theirs := range map[string]string{text: "go.etcd.io/etcd/server/v3@",
		string(inTab): "go.etcd.io/etcd/client/pkg/v3@"} {
		for _, want := range []string{theirs, "k8s.io/apimachinery@", "go1.", "Apache License",
			"Redistribution and use"} {
			assert.True(t, strings.Contains(text, want), "there is no %q", want)
		}
		assert.False(t, strings.Contains(text, "listwatch@"), "our own licence is listed as another's")
	}
}

// TestAnArchiveDependsOnItsFilesAlone makes one twice, from files of other times.
func TestAnArchiveDependsOnItsFilesAlone(t *testing.T) {
	var archives [][]byte
	for i := range 2 {
		dir := t.TempDir()
		for _, name := range []string{"b", "a/c"} {
			file := filepath.Join(dir, "in", name)
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
			require.NoError(t, os.WriteFile(file, []byte(name), 0o755))
			require.NoError(t, os.Chtimes(file, time.Time{}, time.Unix(int64(i)*1e9, 0)))
		}
		if _, err := zipFolder(filepath.Join(dir, "in"), filepath.Join(dir, "out", "x.zip")); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "out", "x.zip"))
		require.NoError(t, err)
		archives = append(archives, text)
	}
	assert.True(t, bytes.Equal(archives[0], archives[1]), "two archives of the same files differ")
}

func TestAWrongCommandLineIsRefused(t *testing.T) {
	for _, args := range [][]string{nil, {"dist"}, {"burn", "x"}, {"-targets", "linux", "dist", t.TempDir()},
		{"-x", "dist", "y"}} {
		err := run(t.Context(), args, io.Discard)
		assert.True(t, err != nil && strings.Contains(err.Error(), "usage: bag"), "%q: got %v", args, err)
	}
}
