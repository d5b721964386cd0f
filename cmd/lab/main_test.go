package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// typed returns the commands, without comments, of the n blocks on a page of docs/ that name the test.
func typed(t *testing.T, n int, page string) [][]string {
	t.Helper()
	text := require.Value(os.ReadFile(filepath.Join(repository, "docs", page)))(t)
	named := regexp.MustCompile("(?m)^```console (?:linux )?" + t.Name() + "\n((?:\\$ .*\n)+)```$")
	var blocks [][]string
	for _, block := range named.FindAllStringSubmatch(string(text), -1) {
		lines := regexp.MustCompile(` +# .*`).ReplaceAllString(strings.TrimSpace(block[1]), "")
		blocks = append(blocks, strings.Split(strings.TrimPrefix(lines, "$ "), "\n$ "))
	}
	require.Equal(t, n, len(blocks), "blocks of commands in "+page+" that name this test")
	return blocks
}

func TestALabIsStartedCheckedHintedAndSolved(t *testing.T) {
	dir, lines := filepath.Join(t.TempDir(), "neighbours"), typed(t, 1, "LABS.md")[0]
	require.Equal(t, 7, len(lines), "commands in the block")
	args := func(line int) []string { return strings.Fields(lines[line])[3:] } // without go run ./cmd/lab
	out, err := call(t, repository, append(args(1), dir)...)
	require.True(t, err == nil && strings.Contains(out, "web-staging") &&
		strings.Contains(out, "go run ./cmd/lab check neighbours"), "start: %v\n%s", err, out)
	_, err = call(t, repository, append(args(1), dir)...)
	assert.True(t, err != nil && strings.Contains(err.Error(), "not empty"),
		"start into a folder that is not empty: %v", err)
	out, err = call(t, dir, args(5)...)
	assert.True(t, errors.Is(err, errNotSolved) && strings.Contains(out, "Not yet."),
		"check of the broken copy: %v\n%s", err, out)
	for n := range 4 {
		out, err = call(t, dir, args(4)...)
		assert.True(t, err == nil && strings.Count(out, "\n") == min(n+1, 3), "hint %d: %v\n%s", n+1, err, out)
	}
	diff := require.Value(call(t, dir, args(6)...))(t)
	apply := exec.Command("git", "apply", "--unsafe-paths", "-")
	apply.Dir, apply.Stdin = dir, strings.NewReader(diff)
	applied, err := apply.CombinedOutput()
	require.True(t, err == nil, "apply the solution: %v\n%s\n%s", err, applied, diff)
	out, err = call(t, dir, args(5)...)
	assert.True(t, err == nil && strings.Contains(out, "Solved."), "check of the solution: %v\n%s", err, out)
}

func TestThePathIsWalkedInItsWorkingCopy(t *testing.T) {
	dir, lines := filepath.Join(t.TempDir(), "path"), typed(t, 1, "LABS.md")[0]
	require.Equal(t, 6, len(lines), "commands in the block")
	args := func(line string) []string { return strings.Fields(strings.TrimPrefix(line, "go run ./cmd/lab")) }
	require.Value(call(t, repository, append(args(lines[0]), dir)...))(t)
	for _, each := range []struct{ command, says string }{
		{"path status", "14  14-controllers   open  Write a controller of your own\n"},
		{"hint build-the-table", "1 of 3: A bookmark"},
		{"hint build-the-table", "2 of 3: A deleted"},
		{"hint build-the-ring", "1 of 3: `startIndex`"},
		{lines[3], "// Ours:\n"},
		{lines[4], ""},
		{lines[5], "02-etcd3         passed  "},
	} {
		out, err := call(t, dir, args(each.command)...)
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
	_, err := call(t, repository, "start", "no-such-lab")
	assert.True(t, err != nil && strings.Contains(err.Error(), "no-such-lab"), "an unknown lab: %v", err)
	_, err = call(t, t.TempDir())
	assert.True(t, err != nil && strings.Contains(err.Error(), "checkout"), "outside of a checkout: %v", err)
	_, err = call(t, repository, "check", "neighbours", t.TempDir())
	assert.True(t, err != nil && strings.Contains(err.Error(), "working copy"),
		"check of a folder that is no copy: %v", err)
	_, err = os.Stat(filepath.Join(repository, ".lab", "no-such-lab"))
	assert.True(t, err != nil, "a folder was made for an unknown lab")
}
