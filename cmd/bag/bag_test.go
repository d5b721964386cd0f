package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

func TestEveryModuleThatIsHandedOutBringsItsLicence(t *testing.T) {
	m := &maker{root: "../.."}
	var inBag, inTab strings.Builder
	require.NoError(t, m.licences(t.Context(), &inBag, "windows/amd64", programs[0]))
	require.NoError(t, m.licences(t.Context(), &inTab, "js/wasm", machine))
	for text, theirs := range map[string]string{inBag.String(): "go.etcd.io/etcd/server/v3@",
		inTab.String(): "go.etcd.io/etcd/client/pkg/v3@"} {
		for _, want := range []string{theirs, "k8s.io/apimachinery@", "go1.", "Apache License",
			"Redistribution and use"} {
			assert.True(t, strings.Contains(text, want), "there is no %q", want)
		}
		assert.False(t, strings.Contains(text, "listwatch@"), "our own licence is listed as another's")
	}
}

// Here, beside its sources, the command finds nothing to pack.
func TestNothingIsLeftOfWhatFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "licences.txt")
	require.True(t, run(t.Context(), []string{"licences", file}, io.Discard) != nil, "there are licences")
	_, err := os.Stat(file)
	assert.True(t, errors.Is(err, fs.ErrNotExist), "of the file there is left: %v", err)
}

func TestAWrongCommandLineIsRefused(t *testing.T) {
	for _, args := range [][]string{nil, {"pack"}, {"burn", "x"}, {"-targets", "linux", "pack", t.TempDir()},
		{"-targets", "linux//amd64,linux", "pack", t.TempDir()}, {"-x", "pack", "y"}} {
		err := run(t.Context(), args, io.Discard)
		assert.True(t, err != nil && strings.Contains(err.Error(), "usage: bag"), "%q: got %v", args, err)
	}
}
