package e2e

import (
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"listwatch/internal/check/compat/program"
)

func TestTheReadyLineNamesAURLThatAnswers(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false")
	if !regexp.MustCompile(`^http://127\.0\.0\.1:[1-9][0-9]*$`).MatchString(v.URL) {
		t.Errorf("ready line names %q", v.URL)
	}
	if lines := v.Stdout.Lines(); len(lines) != 1 {
		t.Errorf("stdout holds %d lines, want the ready line alone:\n%s", len(lines), v.Stdout.String())
	}
	var version struct{ GitVersion string }
	v.Get(t, "/version", &version)
	if version.GitVersion == "" {
		t.Error("/version names no version")
	}
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
	if v.Orphans {
		t.Error("a process outlived the program")
	}
	left, err := os.ReadDir(v.Tmp)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		t.Errorf("temporary file left: %s", entry.Name())
	}
	if code := watch.ExitCode(t, program.EndsWithin); code != 0 {
		t.Errorf("kubectl get -w ended with %d, want 0: the stream was not closed cleanly\n%s", code,
			watch.Stderr.String())
	}
}

// failure runs the program to its end and expects an exit status and one line on stderr that says every word.
func failure(t *testing.T, flags []string, status int, words ...string) {
	t.Helper()
	cmd, tmp := program.VizCommand(t, flags...)
	p := program.Start(t, cmd)
	if code := p.ExitCode(t, program.EndsWithin); code != status {
		t.Errorf("exit status %d, want %d", code, status)
	}
	if out := p.Stdout.String(); out != "" {
		t.Errorf("stdout holds %q, want nothing", out)
	}
	lines := p.Stderr.Lines()
	if len(lines) != 1 {
		t.Errorf("stderr holds %d lines, want one clear line:\n%s", len(lines), p.Stderr.String())
	}
	for _, word := range words {
		if !strings.Contains(p.Stderr.String(), word) {
			t.Errorf("stderr does not say %q:\n%s", word, p.Stderr.String())
		}
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("temporary files left: %v %v", left, err)
	}
}

func TestATakenPortIsOneClearLine(t *testing.T) {
	t.Parallel()
	first := startViz(t, "-demo=false")
	address, err := url.Parse(first.URL)
	if err != nil {
		t.Fatal(err)
	}
	failure(t, []string{"-listen", address.Host}, 1, address.Port())
}

func TestAnUnknownFlagIsAUsageError(t *testing.T) {
	t.Parallel()
	failure(t, []string{"-no-such-flag"}, 2, "no-such-flag")
}

func TestABadValueIsAUsageError(t *testing.T) {
	t.Parallel()
	failure(t, []string{"-listen", "127.0.0.1:0", "-fifo", "lifo"}, 2, "lifo")
}

func TestAnUnexpectedArgumentIsAUsageError(t *testing.T) {
	t.Parallel()
	failure(t, []string{"-listen", "127.0.0.1:0", "surplus"}, 2, "surplus")
}

func TestADataFolderInUseIsOneClearLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	startViz(t, "-demo=false", "-data-dir", dir)
	failure(t, []string{"-listen", "127.0.0.1:0", "-data-dir", dir}, 1, dir)
}

func TestAnUnreachableEtcdIsOneClearLine(t *testing.T) {
	t.Parallel()
	failure(t, []string{"-listen", "127.0.0.1:0", "-etcd-endpoints", "127.0.0.1:1"}, 1, "127.0.0.1:1")
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
