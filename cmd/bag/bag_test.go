package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

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

func TestAWrongCommandLineIsRefused(t *testing.T) {
	for _, args := range [][]string{nil, {"pack"}, {"burn", "x"}, {"-targets", "linux", "pack", t.TempDir()},
		{"-x", "pack", "y"}} {
		err := run(t.Context(), args, io.Discard)
		assert.True(t, err != nil && strings.Contains(err.Error(), "usage: bag"), "%q: got %v", args, err)
	}
}
