//go:build unix

package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

var stoppedFor = flag.Duration("stopped", 10*time.Second, "how long TestAStoppedProgramGoesOn stops the program")

// TestAStoppedProgramGoesOn stops the whole program, as a debugger does at a breakpoint, while several kubectl write
// and one watches. A client that is not stopped with it only waits.
func TestAStoppedProgramGoesOn(t *testing.T) {
	t.Parallel()
	for _, clock := range []string{"real", "manual"} {
		t.Run(clock, func(t *testing.T) {
			t.Parallel()
			stopAndGoOn(t, clock)
		})
	}
}

func stopAndGoOn(t *testing.T, clock string) {
	const writers, each = 4, 150
	v := program.StartViz(t, "-flight=off", "-demo=false", "-controllers=false", "-clock="+clock)
	k := program.KubectlFor(t, v)
	k.Run(t, "get", "pods") // fills the discovery cache
	watching := program.Start(t, k.Command("get", "configmaps", "-w", "-o", "name"))
	var writing []*program.Process
	for w := range writers {
		file := filepath.Join(t.TempDir(), "all.yaml")
		var text strings.Builder
		for i := range each {
			fmt.Fprintf(&text, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c-%d-%d}\n", w, i)
		}
		require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o600))
		writing = append(writing, program.Start(t, k.Command("create", "-f", file)))
	}
	program.Eventually(t, program.ReadyWithin, func() (bool, string) {
		n := 0
		for _, w := range writing {
			n += len(w.Stdout.Lines())
		}
		return n >= writers*each/4, fmt.Sprint(n, " created")
	})
	before := v.Points(t)
	require.NoError(t, v.Cmd.Process.Signal(syscall.SIGSTOP))
	time.Sleep(*stoppedFor) // the subject of the test
	require.NoError(t, v.Cmd.Process.Signal(syscall.SIGCONT))
	for _, w := range writing {
		if code := w.ExitCode(t, time.Minute); code != 0 || w.Stderr.String() != "" || len(w.Stdout.Lines()) != each {
			t.Errorf("kubectl create: status %d, %d lines, stderr %q", code, len(w.Stdout.Lines()), w.Stderr.String())
		}
	}
	program.Eventually(t, program.ReadyWithin, func() (bool, string) {
		n := strings.Count(watching.Stdout.String(), "configmap/c-")
		return n == writers*each, fmt.Sprintf("the watcher saw %d; it says %q", n, watching.Stderr.String())
	})
	after := v.Points(t)
	for _, point := range []string{"WatcherForced", "ReflectorListed", "ReflectorBackoff", "ReflectorWatchEnded",
		"StreamEnded", "WatchChanError", "CacherNotReady"} {
		if after[point] != before[point] {
			t.Errorf("%s: %d before the stop, %d after", point, before[point], after[point])
		}
	}
	assert.True(t, after["ProgramStopped"] == 1, "the log tells of %d stops, want 1", after["ProgramStopped"])
}
