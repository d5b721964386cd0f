package e2e

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

func TestTheReadyLineNamesAURLThatAnswers(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false")
	assert.True(t, regexp.MustCompile(`^http://127\.0\.0\.1:[1-9][0-9]*$`).MatchString(v.URL),
		"ready line names %q", v.URL)
	if lines := v.Stdout.Lines(); len(lines) != 1 {
		t.Errorf("stdout holds %d lines, want the ready line alone:\n%s", len(lines), v.Stdout.String())
	}
	var version struct{ GitVersion string }
	v.Get(t, "/version", &version)
	assert.True(t, version.GitVersion != "", "/version names no version")
}

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

// TestWhatCannotBeginIsOneClearLine runs the program to its end and expects an exit status, one line on stderr that
// says what is wrong, and nothing else.
func TestWhatCannotBeginIsOneClearLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := startViz(t, "-demo=false", "-data-dir", dir)
	address := strings.TrimPrefix(first.URL, "http://")
	for _, c := range []struct {
		status int
		word   string
		flags  []string
	}{
		{1, address, []string{"-listen", address}},
		{1, dir, []string{"-data-dir", dir}},
		{1, "127.0.0.1:1", []string{"-etcd-endpoints", "127.0.0.1:1"}},
		{2, "no-such-flag", []string{"-no-such-flag"}},
		{2, "lifo", []string{"-fifo", "lifo"}},
		{2, "surplus", []string{"surplus"}},
	} {
		cmd, tmp := program.VizCommand(t, append([]string{"-listen", "127.0.0.1:0"}, c.flags...)...)
		p := program.Start(t, cmd)
		code, said := p.ExitCode(t, program.EndsWithin), p.Stderr.Lines()
		if code != c.status || p.Stdout.String() != "" || len(said) != 1 || !strings.Contains(said[0], c.word) {
			t.Errorf("%q: exit status %d, want %d and a line with %q; stdout %q, stderr %q", c.flags, code, c.status,
				c.word, p.Stdout.String(), said)
		}
		if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
			t.Errorf("%q: temporary files left: %v %v", c.flags, left, err)
		}
	}
}

func TestADataFolderKeepsItsPods(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := startViz(t, "-demo=false", "-data-dir", dir)
	create(t, kubectlFor(t, first), podManifest("a"))
	first.Interrupt(t)
	first.ExitCode(t, program.EndsWithin)
	second := startViz(t, "-demo=false", "-data-dir", dir)
	if out := kubectlFor(t, second).Run(t, "get", "pods"); !strings.Contains(out, "a ") {
		t.Errorf("after a restart kubectl shows:\n%s", out)
	}
}
