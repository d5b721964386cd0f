package e2e

import (
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestTheReadyLineNamesAURLThatAnswers(t *testing.T) {
	v := startViz(t, "-demo=false")
	if !regexp.MustCompile(`^http://127\.0\.0\.1:[1-9][0-9]*$`).MatchString(v.url) {
		t.Errorf("ready line names %q", v.url)
	}
	if lines := v.stdout.lines(); len(lines) != 1 {
		t.Errorf("stdout holds %d lines, want the ready line alone:\n%s", len(lines), v.stdout.String())
	}
	var version struct{ GitVersion string }
	v.get(t, "/version", &version)
	if version.GitVersion == "" {
		t.Error("/version names no version")
	}
}

func TestInterruptLeavesNothingBehind(t *testing.T) {
	v := startViz(t)
	k := kubectlFor(t, v)
	watch := start(t, k.command("get", "pods", "-w")) // an open stream must not hold up the end
	eventually(t, readyWithin, func() (bool, string) { return strings.Contains(watch.stdout.String(), "NAME"), watch.stdout.String() })

	v.interrupt(t)
	if code := v.exitCode(t, endsWithin); code != 0 {
		t.Errorf("exit status %d, want 0; stderr:\n%s", code, v.stderr.String())
	}
	if v.orphans {
		t.Error("a process outlived the program")
	}
	left, err := os.ReadDir(v.tmp)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		t.Errorf("temporary file left: %s", entry.Name())
	}
	if code := watch.exitCode(t, endsWithin); code != 0 {
		t.Errorf("kubectl get -w ended with %d, want 0: the stream was not closed cleanly\n%s", code, watch.stderr.String())
	}
}

// failure runs the program to its end and expects an exit status and one line on stderr that says every word.
func failure(t *testing.T, flags []string, status int, words ...string) {
	t.Helper()
	cmd, tmp := vizCommand(t, flags...)
	p := start(t, cmd)
	if code := p.exitCode(t, endsWithin); code != status {
		t.Errorf("exit status %d, want %d", code, status)
	}
	if out := p.stdout.String(); out != "" {
		t.Errorf("stdout holds %q, want nothing", out)
	}
	lines := p.stderr.lines()
	if len(lines) != 1 {
		t.Errorf("stderr holds %d lines, want one clear line:\n%s", len(lines), p.stderr.String())
	}
	for _, word := range words {
		if !strings.Contains(p.stderr.String(), word) {
			t.Errorf("stderr does not say %q:\n%s", word, p.stderr.String())
		}
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("temporary files left: %v %v", left, err)
	}
}

func TestATakenPortIsOneClearLine(t *testing.T) {
	first := startViz(t, "-demo=false")
	address, err := url.Parse(first.url)
	if err != nil {
		t.Fatal(err)
	}
	failure(t, []string{"-listen", address.Host}, 1, address.Port())
}

func TestAnUnknownFlagIsAUsageError(t *testing.T) {
	failure(t, []string{"-no-such-flag"}, 2, "no-such-flag")
}

func TestABadValueIsAUsageError(t *testing.T) {
	failure(t, []string{"-listen", "127.0.0.1:0", "-fifo", "lifo"}, 2, "lifo")
}

func TestAnUnexpectedArgumentIsAUsageError(t *testing.T) {
	failure(t, []string{"-listen", "127.0.0.1:0", "surplus"}, 2, "surplus")
}

func TestADataFolderInUseIsOneClearLine(t *testing.T) {
	dir := t.TempDir()
	startViz(t, "-demo=false", "-data-dir", dir)
	failure(t, []string{"-listen", "127.0.0.1:0", "-data-dir", dir}, 1, dir)
}

func TestAnUnreachableEtcdIsOneClearLine(t *testing.T) {
	failure(t, []string{"-listen", "127.0.0.1:0", "-etcd-endpoints", "127.0.0.1:1"}, 1, "127.0.0.1:1")
}

func TestADataFolderKeepsItsPods(t *testing.T) {
	dir := t.TempDir()
	first := startViz(t, "-demo=false", "-data-dir", dir)
	kubectlFor(t, first).create(t, podManifest("a"))
	first.interrupt(t)
	first.exitCode(t, endsWithin)
	second := startViz(t, "-demo=false", "-data-dir", dir)
	if out := kubectlFor(t, second).run(t, "get", "pods"); !strings.Contains(out, "a ") {
		t.Errorf("after a restart kubectl shows:\n%s", out)
	}
}
