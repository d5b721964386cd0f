package e2e

import (
	"os"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

func TestInterruptLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-flight=off") // what that saves is meant to stay
	k := kubectlFor(t, v)
	watch := program.Start(t, k.Command("get", "pods", "-w")) // an open stream must not hold up the end
	program.Eventually(t, program.ReadyWithin, func() (bool, string) {
		return strings.Contains(watch.Stdout.String(),
			"NAME"), watch.Stdout.String()
	})

	v.Interrupt(t)
	if code := v.ExitCode(t, program.EndsWithin); code != 0 {
		t.Errorf("exit status %d, want 0; stderr:\n%s", code, v.Stderr.String())
	}
	assert.False(t, v.Orphans, "a process outlived the program")
	left, err := os.ReadDir(v.Tmp)
	require.NoError(t, err)
	for _, entry := range left {
		t.Errorf("temporary file left: %s", entry.Name())
	}
	if code := watch.ExitCode(t, program.EndsWithin); code != 0 {
		t.Errorf("kubectl get -w ended with %d, want 0: the stream was not closed cleanly\n%s", code,
			watch.Stderr.String())
	}
}
