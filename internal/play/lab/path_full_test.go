//go:build full

package lab

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// TestThePathGoesFromRedToGreen plays each step's script three times: it must fail with all steps open, succeed with
// the steps up to this one passed, and fail with only this one open. It builds the program 43 times.
func TestThePathGoesFromRedToGreen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "path")
	require.NoError(t, StartPath(root, dir))
	red := map[int]bool{}
	drive := func(l Lab, wrong bool) {
		problem, broken, err := l.Drive(t.Context(), dir, io.Discard)
		assert.True(t, err == nil && (problem != "") == wrong, "step %d, wrong %v: %q, %v", l.Step, wrong, problem, err)
		for _, n := range broken {
			red[n] = true
		}
		t.Logf("%d: %s %v", l.Step, problem, broken)
	}
	for _, l := range Steps() {
		drive(l, true)
	}
	assert.True(t, red[1] && red[5] && red[8], "at the start these promises are broken: %v", red)
	for _, l := range Steps() {
		require.NoError(t, l.Pass(dir))
		drive(l, false)
	}
	clear(red)
	for _, l := range Steps() {
		name := filepath.Join(dir, l.dir(), require.Value(l.declaration(os.DirFS(dir)))(t).File.Path)
		_, ours, first, err := l.Break(os.DirFS(dir))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(name, first, 0o644))
		drive(l, true)
		require.NoError(t, os.WriteFile(name, ours, 0o644))
	}
	clear(red)
	drive(Steps()[12], false)
	assert.Equal(t, 0, len(red), "at the end promises are broken")
}
