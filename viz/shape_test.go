//go:build !race

package viz

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

const maxLines = 60 // the maximum number of lines in a function

// block matches the first line of a function or of a control statement's block; control matches only the latter.
var (
	block   = regexp.MustCompile(`(?:\)|=>) \{$`)
	control = regexp.MustCompile(`^(?:\} )?(?:else|if|for|while|switch|catch)\b`)
)

// TestAFunctionFitsAScreen expects at most maxLines lines in a function. It finds a function's end by the indentation.
func TestAFunctionFitsAScreen(t *testing.T) {
	functions := 0
	for name, source := range sources(t) {
		lines := strings.Split(source, "\n")
		for from, line := range lines {
			code := strings.TrimLeft(line, " ")
			if !block.MatchString(code) || control.MatchString(code) {
				continue
			}
			functions++
			end := line[:len(line)-len(code)] + "}"
			n := 2 + slices.IndexFunc(lines[from+1:], func(each string) bool { return strings.HasPrefix(each, end) })
			assert.True(t, n > 1 && n <= maxLines, "%s:%d: a function of %d lines", name, from+1, n)
		}
	}
	assert.True(t, functions > 500, "%d functions", functions)
}

// TestTypesAreMeant checks that no script bypasses the type checker, and that few places have the type any.
func TestTypesAreMeant(t *testing.T) {
	anything := 0
	for name, text := range sources(t) {
		for _, out := range []string{"@ts-nocheck", "@ts-ignore", "@ts-expect-error", "{*}"} {
			assert.False(t, strings.Contains(text, out), "%s has %s", name, out)
		}
		for _, form := range []string{"{any}", ": any", "<any", "any>", ", any", "any[]"} {
			for line := range strings.Lines(text) {
				if strings.Contains(line, "/**") || strings.HasPrefix(strings.TrimSpace(line), "* @") {
					anything += strings.Count(line, form)
				}
			}
		}
	}
	assert.True(t, anything <= 20, "%d places have any type, want 20 at most", anything)
}

// TestWhatKnowsNoDocumentRunsWithoutOne uses an engine without a document to load the scripts that must not use it.
// Loading runs only their top level; the type checker covers their functions.
func TestWhatKnowsNoDocumentRunsWithoutOne(t *testing.T) {
	written := require.Value(os.ReadFile("tsconfig.pure.json"))(t)
	_, list, _ := strings.Cut(string(written), `"include":`)
	var include []string
	require.NoError(t, json.Unmarshal([]byte(strings.TrimSuffix(strings.TrimSpace(list), "}")), &include))
	modules := map[string]string{}
	for _, pattern := range include {
		names, err := filepath.Glob(pattern)
		require.True(t, err == nil && len(names) > 0, "%s: %v", pattern, err)
		for _, name := range names {
			if filepath.Ext(name) == ".js" {
				modules[fmt.Sprintf("m%d", len(modules))] = filepath.ToSlash(name)
			}
		}
	}
	require.True(t, len(modules) >= 20, "%d scripts", len(modules))
	e := newEngine(t, modules)
	n := run[int](t, e, "Object.keys(page).length")
	assert.True(t, n == len(modules), "%d modules, want %d", n, len(modules))
}
