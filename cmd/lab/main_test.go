package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/play/lab"
)

const repository = "../.."

// call runs the command and returns its output.
func call(t *testing.T, from string, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	err := run(t.Context(), from, args, &out)
	return out.String(), err
}

func TestALabIsStartedCheckedHintedAndSolved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "neighbours")
	out, err := call(t, repository, "start", "neighbours", dir)
	require.True(t, err == nil && strings.Contains(out, "web-staging") &&
		strings.Contains(out, "go run ./cmd/lab check neighbours"), "start: %v\n%s", err, out)
	_, err = call(t, repository, "start", "neighbours", dir)
	assert.True(t, err != nil && strings.Contains(err.Error(), "not empty"),
		"start into a folder that is not empty: %v", err)
	out, err = call(t, repository, "check", "neighbours", dir)
	assert.True(t, errors.Is(err, errNotSolved) && strings.Contains(out, "Not yet."),
		"check of the broken copy: %v\n%s", err, out)
	for n := range 4 {
		out, err = call(t, dir, "hint", "neighbours")
		assert.True(t, err == nil && strings.Count(out, "\n") == min(n+1, 3), "hint %d: %v\n%s", n+1, err, out)
	}
	diff := require.Value(call(t, dir, "solution", "neighbours"))(t)
	apply := exec.Command("git", "apply", "--unsafe-paths", "-")
	apply.Dir, apply.Stdin = dir, strings.NewReader(diff)
	applied, err := apply.CombinedOutput()
	require.True(t, err == nil, "apply the solution: %v\n%s\n%s", err, applied, diff)
	out, err = call(t, dir, "check", "neighbours")
	assert.True(t, err == nil && strings.Contains(out, "Solved."), "check of the solution: %v\n%s", err, out)
}

func TestThePathIsWalkedInItsWorkingCopy(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "path")
	require.Value(call(t, repository, "path", "start", dir))(t)
	for _, each := range []struct{ command, says string }{
		{"path status", "14  14-controllers   open  Write a controller of your own\n"},
		{"hint build-the-table", "1 of 3: A bookmark"},
		{"hint build-the-table", "2 of 3: A deleted"},
		{"hint build-the-ring", "1 of 3: `startIndex`"},
		{"path show 4", "// Ours:\n"},
		{"path pass 4", ""},
		{"path status", "05-cachewatcher  passed  Write the conversion"},
	} {
		out, err := call(t, dir, strings.Fields(each.command)...)
		assert.True(t, err == nil && strings.Contains(out, each.says), "%s: %v\n%s", each.command, err, out)
	}
	for _, wrong := range []string{"path", "path dance", "path next 15", "path show", "path pass x"} {
		assert.True(t, assert.ErrorOf(call(t, dir, strings.Fields(wrong)...)) != nil, "%s is accepted", wrong)
	}
	_, err := call(t, repository, "path", "status")
	assert.True(t, err != nil && strings.Contains(err.Error(), "path start"), "outside of it: %v", err)
}

func TestTheListNamesEveryLab(t *testing.T) {
	out := require.Value(call(t, repository))(t)
	for _, each := range lab.All() {
		assert.True(t, strings.Contains(out, each.ID), "%s is not listed", each.ID)
	}
}

func TestWrongCommandLinesAreRefused(t *testing.T) {
	for _, args := range [][]string{{"start"}, {"dance", "neighbours"}, {"hint", "neighbours", "x"}, {"start", "a",
		"b", "c"}, {"start", "neighbours", "-h"}, {"path", "start", "-h"}, {"path", "-h"}} {
		_, err := call(t, repository, args...)
		assert.True(t, errors.Is(err, errUsage), "%q: got %v, want the usage", args, err)
	}
	if _, err := call(t, repository, "start", "no-such-lab"); err == nil || !strings.Contains(err.Error(),
		"no-such-lab") {
		t.Errorf("an unknown lab: %v", err)
	}
	_, err := call(t, t.TempDir())
	assert.True(t, err != nil && strings.Contains(err.Error(), "checkout"), "outside of a checkout: %v", err)
	_, err = call(t, repository, "check", "neighbours", t.TempDir())
	assert.True(t, err != nil && strings.Contains(err.Error(), "working copy"),
		"check of a folder that is no copy: %v", err)
	_, err = os.Stat(filepath.Join(repository, ".lab", "no-such-lab"))
	assert.True(t, err != nil, "a folder was made for an unknown lab")
}
