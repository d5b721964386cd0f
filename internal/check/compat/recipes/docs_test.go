//go:build unix

package recipes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

func debuggingPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "docs", "DEBUGGING.md"))
	require.NoError(t, err)
	return string(text)
}

// TestThePageListsWhatTheRecipesDo: the first stop of each recipe, and every breakpoint of the long one with its
// condition.
func TestThePageListsWhatTheRecipesDo(t *testing.T) {
	page := debuggingPage(t)
	for _, r := range recipes(t) {
		row := fmt.Sprintf("| [%s](recipes/%s.dlv) |", r.name, r.name)
		_, rest, found := strings.Cut(page, row)
		line, _, _ := strings.Cut(rest, "\n")
		if !found || !strings.Contains(line, "| `"+r.breaks[0].function+"` |") {
			t.Errorf("no row %s… with `%s`", row, r.breaks[0].function)
		}
		if r.pkg != running {
			continue
		}
		for _, b := range r.breaks {
			row := fmt.Sprintf("| `%s` | `%s` |", b.function, b.condition)
			assert.True(t, strings.Contains(page, row), "no row %s", row)
		}
	}
}

// TestADumpNamesTheGoroutines: what GODEBUG=tracebacklabels=1 is said to do.
func TestADumpNamesTheGoroutines(t *testing.T) {
	t.Parallel()
	cmd, _ := program.VizCommand(t, "-listen", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "GODEBUG=tracebacklabels=1")
	p := program.Start(t, cmd)
	program.Eventually(t, program.ReadyWithin, func() (bool, string) {
		return strings.Contains(p.Stdout.String(), "listening on "), p.Stderr.String()
	})
	require.NoError(t, cmd.Process.Signal(syscall.SIGQUIT))
	p.ExitCode(t, patience)
	for _, name := range []string{"cacher.dispatchEvents", "processorListener.run", "watchChan.startWatching"} {
		if !strings.Contains(p.Stderr.String(), name) {
			t.Errorf("the dump does not name %s:\n%.2000s", name, p.Stderr.String())
		}
	}
}
