//go:build unix

package recipes

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-dap"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

// TestVSCodeLaunchesARecipe as launch.json describes it: delve builds what the recipe debugs, and stops first where the
// recipe does. All recipes are described in the same form.
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

// TestVSCodeAttaches to a running program, which goes on when the editor leaves.
func TestVSCodeAttaches(t *testing.T) {
	t.Parallel()
	v := program.StartViz(t, "-demo=false", "-controllers=false")
	e := newEditor(t)
	const dispatch = "cacher.(*Cacher).dispatchEvent"
	e.start("attach", dispatch, `event.Key == "/registry/pods/default/a"`, map[string]any{
		"processId": v.Cmd.Process.Pid,
	})
	created := program.Start(t, program.KubectlFor(t, v).Command("run", "a", "--image=nginx"))
	e.stopsIn(dispatch)
	e.does("disconnect", map[string]any{"terminateDebuggee": false}, "disconnect")
	assert.Equal(t, 0, created.ExitCode(t, patience), "kubectl, after delve has gone")
}

// editor is the client's side of the Debug Adapter Protocol.
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
	conn, err := net.Dial("tcp", listens[1])
	require.NoError(t, err)
	t.Cleanup(func() { // whatever happens: delve ends what it has launched when its client goes
		_ = conn.Close()
		<-delve.Done
	})
	// the first build has everything to compile
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Minute)))
	return &editor{t: t, conn: conn, in: bufio.NewReader(conn)}
}

// does sends a request and returns the first answer or event that has the name.
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

// start does what the editor does when a configuration is started, to which the editor adds values of its own.
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

// stopsIn waits for a stop and looks at which function is on top of the stack.
func (e *editor) stopsIn(function string) {
	e.t.Helper()
	stopped := e.receives("stopped")
	frames := e.does("stackTrace", map[string]any{"threadId": stopped.Body.ThreadID, "levels": 1},
		"stackTrace").Body.StackFrames
	_, bare, _ := strings.Cut(function, ".")
	require.True(e.t, len(frames) > 0 && strings.HasSuffix(frames[0].Name, "."+bare), "stopped in %v, want %s", frames,
		function)
}
