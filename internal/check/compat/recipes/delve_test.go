//go:build unix

package recipes

import (
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

const patience = 5 * time.Minute // building and debugging a program without optimizations, on a busy machine

var stay = flag.Duration("stay", 8*time.Second, "how long the tests stop a program at a breakpoint while kubectl "+
	"writes; etcd alone would give up after 7 s")

// everywhere is set in `make full`: then the program is stopped for that long at every breakpoint.
var everywhere = os.Getenv("FULL") != ""

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../../..")
	require.NoError(t, err)
	return dir
}

func read(t *testing.T, elements ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root(t)}, elements...)...))
	require.NoError(t, err)
	return string(text)
}

// session is one delve at work, as a person at a terminal has it.
type session struct {
	*program.Process
	t     *testing.T
	typed io.WriteCloser
	at    int // of what delve showed: so far it was looked for
}

// debug runs a shell command that ends up in delve.
func debug(t *testing.T, command string) *session {
	t.Helper()
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = root(t)
	cmd.Env = append(os.Environ(), "GOWORK=off", "TMPDIR="+t.TempDir())
	typed, err := cmd.StdinPipe()
	require.NoError(t, err)
	s := &session{Process: program.Start(t, cmd), t: t, typed: typed}
	t.Cleanup(s.end) // before Process.Kill, which does not reach what delve debugs
	return s
}

var colour = regexp.MustCompile("\x1b\\[[0-9;]*m")

// shown is what delve and its program have printed.
func (s *session) shown() string { return colour.ReplaceAllString(s.Stdout.String(), "") }

// wants waits until delve shows what stands behind all that was waited for before.
func (s *session) wants(text string) {
	s.t.Helper()
	ended := false
	program.Eventually(s.t, patience, func() (bool, string) {
		shown := s.shown()
		if end := endOf(shown[s.at:], text); end >= 0 {
			s.at += end
			return true, ""
		}
		if ended {
			s.t.Fatalf("delve has ended and did not show %q; it showed:\n%s%s", text, shown[s.at:], s.Stderr.String())
		}
		ended = s.hasEnded()
		return false, text + " is not shown, but\n" + shown[s.at:] + s.Stderr.String()
	})
}

// endOf returns where a text ends in what delve shows, -1 if it does not show it yet. A number has a line of its own:
// addresses, versions and names are full of digits.
func endOf(shown, text string) int {
	pattern := regexp.QuoteMeta(text)
	if _, err := strconv.Atoi(text); err == nil {
		pattern = `(?m)^(\(dlv\) )?` + pattern + "$"
	}
	if at := regexp.MustCompile(pattern).FindStringIndex(shown); at != nil {
		return at[1]
	}
	return -1
}

func TestANumberIsLookedForAsALine(t *testing.T) {
	t.Parallel()
	for shown, want := range map[string]int{"./chapters/06-cacher\n10\n": -1, "10\n0\n": 4, "100\n(dlv) 0\n": 11} {
		assert.Equal(t, want, endOf(shown, "0"), shown)
	}
}

func (s *session) hasEnded() bool {
	select {
	case <-s.Done:
		return true
	default:
		return false
	}
}

func (s *session) types(line string) {
	s.t.Helper()
	if _, err := io.WriteString(s.typed, line+"\n"); err != nil {
		s.t.Fatalf("type %q: %v\n%s%s", line, err, s.shown(), s.Stderr.String())
	}
}

// interrupt is Ctrl-C: every process at the terminal gets it. The program stops, and delve's prompt comes back.
func (s *session) interrupt() { _ = syscall.Kill(-s.Cmd.Process.Pid, syscall.SIGINT) }

// end ends delve, and with it what it debugs: at the end of its input if the program is stopped.
func (s *session) end() {
	_ = s.typed.Close()
	for range 10 {
		select {
		case <-s.Done:
			return
		case <-time.After(3 * time.Second):
			s.interrupt()
		}
	}
}

// follow types and waits for what a script tells: "(dlv) what is typed" and "=> what is shown".
func (s *session) follow(script []string) {
	s.t.Helper()
	for _, line := range script {
		if typed, ok := strings.CutPrefix(line, "(dlv) "); ok {
			s.types(typed)
		}
		if want, ok := strings.CutPrefix(line, "=> "); ok {
			s.wants(want)
		}
	}
}

// understood fails the test if delve could not do something that it was told.
func (s *session) understood() {
	s.t.Helper()
	s.end()
	if errors := s.Stderr.String(); strings.Contains(errors, "Command failed") || strings.Contains(errors,
		"rror executing") {
		s.t.Errorf("delve says:\n%sand showed:\n%s", errors, s.shown())
	}
}
