//go:build full

package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// maxSize is the limit of the gzipped machine's size, in bytes: readers load it on phones, too.
const maxSize = 10_000_000

// TestTheMachineIsSmall checks the size of the gzipped machine that `make tab` has built.
func TestTheMachineIsSmall(t *testing.T) {
	info, err := os.Stat("../../bin/tab/site/machine.gz")
	require.NoError(t, err, "make tab builds it")
	assert.True(t, info.Size() <= maxSize, "the machine has %d bytes by gzip, more than %d", info.Size(), maxSize)
}

func TestTheMachineBringsTheLicencesOfAllThatItIsMadeOf(t *testing.T) {
	text, err := os.ReadFile("../../bin/tab/site/THIRD-PARTY.txt")
	require.NoError(t, err, "make tab writes it")
	for _, want := range []string{"go.etcd.io/etcd/client/pkg/v3@", "k8s.io/apimachinery@", "go1.", "Apache License",
		"Redistribution and use"} {
		assert.True(t, strings.Contains(string(text), want), "there is no %q", want)
	}
	assert.False(t, strings.Contains(string(text), "listwatch@"), "our own licence is listed as another's")
}

// TestWhatIsMendedIsStillBroken requires that the packages that build.sh patches still do not compile for js.
func TestWhatIsMendedIsStillBroken(t *testing.T) {
	for name, broken := range map[string]bool{
		"github.com/coreos/go-systemd/v22/journal": true,
		"go.etcd.io/etcd/client/pkg/v3/fileutil":   true,
		"go.etcd.io/etcd/client/pkg/v3/types":      false, // compiles, so the toolchain works
	} {
		build := exec.Command("go", "build", name)
		build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
		out, err := build.CombinedOutput()
		assert.True(t, (err != nil) == broken,
			"%s: broken: %v, want %v: build.sh need not mend what compiles\n%s", name, err, broken, out)
	}
}
