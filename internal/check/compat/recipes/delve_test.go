//go:build unix

package recipes

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-dap"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

const patience = 5 * time.Minute // to build and debug a program without optimizations on a busy machine

var stay = flag.Duration("stay", 8*time.Second, "how long the tests stop a program at a breakpoint while kubectl "+
	"writes; etcd alone would give up after 7 s")

// everywhere is true in `make full`. Tests then run slow commands, too, and stop cmd/viz for -stay at each breakpoint.
var everywhere = os.Getenv("FULL") != ""

func root(t *testing.T) string {
	t.Helper()
	dir := require.Value(filepath.Abs("../../../.."))(t)
	return dir
}

func read(t *testing.T, elements ...string) string {
	t.Helper()
	text := require.Value(os.ReadFile(filepath.Join(append([]string{root(t)}, elements...)...)))(t)
	return string(text)
}

// session is a running delve, driven through its standard input and output.
type session struct {
	*program.Process
	t     *testing.T
	typed io.WriteCloser
	at    int // wants has read the output up to here
}

// debug runs a shell command that starts delve, in the repository's root. The session ends with the test.
func debug(t *testing.T, command string) *session {
	t.Helper()
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = root(t)
	cmd.Env = append(os.Environ(), "GOWORK=off", "TMPDIR="+t.TempDir())
	typed := require.Value(cmd.StdinPipe())(t)
	s := &session{Process: program.Start(t, cmd), t: t, typed: typed}
	t.Cleanup(s.end) // runs before Process.Kill, which does not kill delve's child
	return s
}

var colour = regexp.MustCompile("\x1b\\[[0-9;]*m")

// shown returns what delve and its program have written to stdout, without colours.
func (s *session) shown() string { return colour.ReplaceAllString(s.Stdout.String(), "") }

// wants waits until text follows the previous call's match in the output. It fails the test if delve ends first.
func (s *session) wants(text string) {
	s.t.Helper()
	ended := false
	program.Eventually(s.t, patience, func() (bool, string) {
		shown := s.shown()
		if end := endOf(shown[s.at:], text); end >= 0 {
			s.at += end
			return true, ""
		}
		require.True(s.t, !ended,
			"delve has ended and did not show %q; it showed:\n%s%s", text, shown[s.at:], s.Stderr.String())
		ended = s.hasEnded()
		return false, text + " is not shown, but\n" + shown[s.at:] + s.Stderr.String()
	})
}

// endOf returns the end of a text in delve's output, or -1 if the output does not contain the text yet. A number must
// have a line to itself, because addresses, versions and names are full of digits.
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
	_, err := io.WriteString(s.typed, line+"\n")
	require.True(s.t, err == nil, "type %q: %v\n%s%s", line, err, s.shown(), s.Stderr.String())
}

// interrupt acts as Ctrl-C at a terminal: the program stops, and delve's prompt returns.
func (s *session) interrupt() { _ = syscall.Kill(-s.Cmd.Process.Pid, syscall.SIGINT) }

// end closes delve's input, which ends delve and a stopped program. It interrupts a running program up to ten times.
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

// follow plays a script: it types the lines after "(dlv) " and waits for the lines after "=> ".
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

// understood ends the session and fails the test if delve has reported a failed command.
func (s *session) understood() {
	s.t.Helper()
	s.end()
	errors := s.Stderr.String()
	assert.True(s.t, !strings.Contains(errors, "Command failed") && !strings.Contains(errors, "rror executing"),
		"delve says:\n%sand showed:\n%s", errors, s.shown())
}

// TestVSCodeLaunchesARecipe launches one recipe as launch.json describes it. delve must build the recipe's package and
// stop at the recipe's first stop. launch.json describes all recipes that run a test in the same form.
func TestVSCodeLaunchesARecipe(t *testing.T) {
	t.Parallel()
	all := recipes(t)
	r := all[slices.IndexFunc(all, func(r recipe) bool { return r.name == "pop-takes-a-key" })]
	e := newEditor(t)
	e.start("recipe: "+r.name, r.stops, "", map[string]any{
		"dlvCwd": filepath.Join(root(t), r.pkg), "output": filepath.Join(t.TempDir(), "debugged"),
	})
	e.stopsIn(r.stops)
	e.does("disconnect", map[string]any{"terminateDebuggee": true}, "disconnect")
}

// TestVSCodeAttaches attaches to a running program. It must stop at a breakpoint, and continue when the editor leaves.
func TestVSCodeAttaches(t *testing.T) {
	t.Parallel()
	v := program.StartViz(t, "-demo=false", "-controllers=false")
	e := newEditor(t)
	const dispatch = "cacher.(*Cacher).dispatchEvent"
	e.start("attach", dispatch, `event.Key == "/registry/pods/default/a"`, map[string]any{
		"processId": v.Cmd.Process.Pid})
	created := program.Start(t, program.KubectlFor(t, v).Command("run", "a", "--image=nginx"))
	e.stopsIn(dispatch)
	e.does("disconnect", map[string]any{"terminateDebuggee": false}, "disconnect")
	assert.Equal(t, 0, created.ExitCode(t, patience), "kubectl, after delve has gone")
}

// editor is the client side of the Debug Adapter Protocol.
type editor struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
	seq  int
}

// message is a response to a command, or an event.
type message struct {
	Command, Event string
	Success        bool
	Body           struct {
		Breakpoints []struct {
			Verified bool
			Message  string
		}
		StackFrames []struct{ Name string }
		ThreadID    int
	}
}

// newEditor starts delve's DAP server and connects.
func newEditor(t *testing.T) *editor {
	t.Helper()
	cmd := exec.Command("go", "tool", "-modfile="+filepath.Join(root(t), "internal", "check", "tools", "go.mod"),
		"dlv", "dap", "--listen=127.0.0.1:0")
	cmd.Dir = root(t)
	cmd.Env = append(os.Environ(), "GOWORK=off", "TMPDIR="+t.TempDir())
	delve := program.Start(t, cmd)
	var listens []string
	program.Eventually(t, patience, func() (bool, string) {
		listens = regexp.MustCompile(`DAP server listening at: (\S+)`).FindStringSubmatch(delve.Stdout.String())
		return listens != nil, delve.Stdout.String() + delve.Stderr.String()
	})
	conn := require.Value(net.Dial("tcp", listens[1]))(t)
	t.Cleanup(func() { // when the client leaves, delve ends the programs that it has launched
		_ = conn.Close()
		<-delve.Done
	})
	// The first build compiles everything, so it takes long.
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Minute)))
	return &editor{t: t, conn: conn, in: bufio.NewReader(conn)}
}

// does sends a request and returns the next response or event with the given name.
func (e *editor) does(command string, arguments any, name string) message {
	e.t.Helper()
	e.seq++
	sent := map[string]any{"seq": e.seq, "type": "request", "command": command, "arguments": arguments}
	require.NoError(e.t, dap.WriteBaseMessage(e.conn, require.Value(json.Marshal(sent))(e.t)))
	return e.receives(name)
}

func (e *editor) receives(name string) (m message) {
	e.t.Helper()
	for m.Command != name && m.Event != name {
		text, err := dap.ReadBaseMessage(e.in)
		require.NoError(e.t, err, name)
		m = message{}
		require.NoError(e.t, json.Unmarshal(text, &m))
		require.True(e.t, m.Event != "terminated" && (m.Command == "" || m.Success), "want %s: %s", name, text)
	}
	return m
}

// start starts a configuration of launch.json, with the values that the editor adds, and a breakpoint in function.
func (e *editor) start(name string, function, condition string, values map[string]any) {
	e.t.Helper()
	text := strings.ReplaceAll(read(e.t, ".vscode", "launch.json"), "${workspaceFolder}", root(e.t))
	var file struct{ Configurations []map[string]any }
	require.NoError(e.t, json.Unmarshal([]byte(text), &file))
	i := slices.IndexFunc(file.Configurations, func(c map[string]any) bool { return c["name"] == name })
	require.True(e.t, i >= 0, "launch.json has no %s", name)
	config := file.Configurations[i]
	maps.Copy(config, values)
	e.does("initialize", map[string]any{"adapterID": "go", "pathFormat": "path"}, "initialize")
	e.does(fmt.Sprint(config["request"]), config, "initialized")
	set := e.does("setFunctionBreakpoints", map[string]any{"breakpoints": []map[string]any{{
		"name": function, "condition": condition,
	}}}, "setFunctionBreakpoints").Body.Breakpoints
	require.True(e.t, len(set) == 1 && set[0].Verified, "breakpoint in %s: %v", function, set)
	e.does("configurationDone", map[string]any{}, "configurationDone")
}

// stopsIn waits for a stop, which must be in function.
func (e *editor) stopsIn(function string) {
	e.t.Helper()
	stopped := e.receives("stopped")
	frames := e.does("stackTrace", map[string]any{"threadId": stopped.Body.ThreadID, "levels": 1},
		"stackTrace").Body.StackFrames
	_, bare, _ := strings.Cut(function, ".")
	require.True(e.t, len(frames) > 0 && strings.HasSuffix(frames[0].Name, "."+bare), "stopped in %v, want %s", frames,
		function)
}
