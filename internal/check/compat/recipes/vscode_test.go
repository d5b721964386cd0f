//go:build unix

package recipes

import (
	"bufio"
	"encoding/json"
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

// TestVSCodeStopsWhereTheRecipesSay does with each configuration of .vscode/launch.json what the editor does: it talks
// to delve's DAP server, starts or attaches, sets function breakpoints and waits for the first stop. For all
// configurations but attach, delve compiles every dependency again without optimizations, so they are left to `make
// full`. In every run, another test debugs the recipes from the terminal, and a third one compares the configurations with
// them.
func TestVSCodeStopsWhereTheRecipesSay(t *testing.T) {
	t.Parallel()
	const dispatch = "cacher.(*Cacher).dispatchEvent"
	byName := map[string]recipe{}
	for _, r := range recipes(t) {
		byName["recipe: "+r.name] = r
	}
	for name, config := range configurations(t) {
		if !everywhere && name != "attach" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(root(t), "chapters", "05-cachewatcher", "cache_watcher_test.go")
			e := newEditor(t, map[string]string{
				"workspaceFolder": root(t), "fileDirname": filepath.Dir(file),
				"selectedText": "TestTheTypeOfAnEventFollowsFromTheTwoMatchesAlone",
			})
			r, isRecipe := byName[name]
			switch {
			case isRecipe:
				e.start(config, r.breaks)
				if r.pkg == running {
					createPod(t, e.said(regexp.MustCompile(`listening on (\S+)`)))
				}
				e.stopsIn(r.breaks[0].function)
			case name == "viz, manual clock":
				e.start(config, []breakpoint{{function: dispatch}})
				e.stopsIn(dispatch)
			case name == "attach":
				v := program.StartViz(t, "-demo=false", "-controllers=false")
				config["processId"] = v.Cmd.Process.Pid
				e.start(config, []breakpoint{{function: dispatch,
					condition: `event.Key == "/registry/pods/default/a"`}})
				created := createPod(t, v.URL)
				e.stopsIn(dispatch)
				e.disconnect(false)
				assert.Equal(t, created.ExitCode(t, patience), 0, "kubectl, after delve has gone")
				return
			case name == "the selected test":
				const convert = "cachewatcher.(*CacheWatcher).convertToWatchEvent"
				e.start(config, []breakpoint{{function: convert}})
				e.stopsIn(convert)
			default:
				t.Fatal("this test does not know the configuration")
			}
			e.disconnect(true)
		})
	}
}

// createPod has kubectl create the pod a: its answer comes when the program has been let go.
func createPod(t *testing.T, url string) *program.Process {
	return program.Start(t, program.KubectlFor(t, &program.Viz{URL: url}).Command("run", "a", "--image=nginx"))
}

// configurations returns those of launch.json, by name.
func configurations(t *testing.T) map[string]map[string]any {
	t.Helper()
	var file struct{ Configurations []map[string]any }
	require.NoError(t, json.Unmarshal([]byte(read(t, ".vscode", "launch.json")), &file))
	all := map[string]map[string]any{}
	for _, each := range file.Configurations {
		all[each["name"].(string)] = each
	}
	return all
}

// editor is the client's side of the Debug Adapter Protocol.
type editor struct {
	t         *testing.T
	delve     *program.Process
	conn      net.Conn
	in        *bufio.Reader
	seq       int
	variables map[string]string // what the editor puts in for ${name}
}

// newEditor starts delve's DAP server and connects.
func newEditor(t *testing.T, variables map[string]string) *editor {
	t.Helper()
	cmd := exec.Command("go", "tool", "-modfile="+filepath.Join(root(t), "internal", "check", "tools", "go.mod"),
		"dlv", "dap", "--listen=127.0.0.1:0")
	cmd.Dir = root(t)
	cmd.Env = append(os.Environ(), "GOWORK=off", "TMPDIR="+t.TempDir())
	e := &editor{t: t, delve: program.Start(t, cmd), variables: variables}
	address := e.said(regexp.MustCompile(`DAP server listening at: (\S+)`))
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { // whatever happens: delve ends what it has launched when its client goes
		_ = conn.Close()
		<-e.delve.Done
	})
	// the first build has everything to compile
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Minute)))
	e.conn, e.in = conn, bufio.NewReader(conn)
	return e
}

// said waits until delve, or the program in it, prints what matches, and returns the group of it.
func (e *editor) said(pattern *regexp.Regexp) string {
	e.t.Helper()
	var found []string
	program.Eventually(e.t, patience, func() (bool, string) {
		found = pattern.FindStringSubmatch(e.delve.Stdout.String())
		return found != nil, e.delve.Stdout.String() + e.delve.Stderr.String()
	})
	return found[1]
}

func (e *editor) request(command string) dap.Request {
	e.seq++
	return dap.Request{ProtocolMessage: dap.ProtocolMessage{Seq: e.seq, Type: "request"}, Command: command}
}

func (e *editor) send(message dap.Message) {
	e.t.Helper()
	require.NoError(e.t, dap.WriteProtocolMessage(e.conn, message))
}

// receive reads messages up to the first of the wanted type. A refusal, or an end of the program, ends the test.
func receive[M dap.Message](e *editor) M {
	e.t.Helper()
	for {
		message, err := dap.ReadProtocolMessage(e.in)
		if err != nil {
			e.t.Fatalf("want a %T: %v\n%s%s", *new(M), err, e.delve.Stdout.String(), e.delve.Stderr.String())
		}
		switch m := message.(type) {
		case M:
			return m
		case *dap.ErrorResponse:
			e.t.Fatalf("%s: %s %+v\n%s", m.Command, m.Message, m.Body.Error, e.delve.Stderr.String())
		case *dap.TerminatedEvent:
			e.t.Fatalf("it ended without a %T\n%s%s", *new(M), e.delve.Stdout.String(), e.delve.Stderr.String())
		}
	}
}

// start does what the editor does when a configuration is started.
func (e *editor) start(config map[string]any, breaks []breakpoint) {
	e.t.Helper()
	e.send(&dap.InitializeRequest{Request: e.request("initialize"), Arguments: dap.InitializeRequestArguments{
		AdapterID: "go", PathFormat: "path", LinesStartAt1: true, ColumnsStartAt1: true,
	}})
	receive[*dap.InitializeResponse](e)
	arguments := e.arguments(config)
	if config["request"] == "attach" {
		e.send(&dap.AttachRequest{Request: e.request("attach"), Arguments: arguments})
	} else {
		e.send(&dap.LaunchRequest{Request: e.request("launch"), Arguments: arguments})
	}
	receive[*dap.InitializedEvent](e)
	set := &dap.SetFunctionBreakpointsRequest{Request: e.request("setFunctionBreakpoints")}
	for _, b := range breaks {
		set.Arguments.Breakpoints = append(set.Arguments.Breakpoints, dap.FunctionBreakpoint{Name: b.function,
			Condition: b.condition, HitCondition: b.hits})
	}
	e.send(set)
	for i, b := range receive[*dap.SetFunctionBreakpointsResponse](e).Body.Breakpoints {
		if !b.Verified {
			e.t.Fatalf("function breakpoint %s: %s", breaks[i].function, b.Message)
		}
	}
	e.send(&dap.ConfigurationDoneRequest{Request: e.request("configurationDone")})
}

// arguments are a configuration as the Go extension hands it to delve: variables put in, the build in the program's
// folder. Only the port is ours, because the usual one may be taken.
func (e *editor) arguments(config map[string]any) json.RawMessage {
	e.t.Helper()
	text, err := json.Marshal(config)
	require.NoError(e.t, err)
	for name, value := range e.variables {
		text = []byte(strings.ReplaceAll(string(text), "${"+name+"}", value))
	}
	arguments := map[string]any{}
	require.NoError(e.t, json.Unmarshal(text, &arguments))
	if folder, ok := arguments["program"].(string); ok {
		arguments["dlvCwd"], arguments["output"] = folder, filepath.Join(e.t.TempDir(), "debugged")
	}
	if arguments["mode"] == "debug" {
		arguments["args"] = append(slices.Clone(arguments["args"].([]any)), "-listen", "127.0.0.1:0")
	}
	text, err = json.Marshal(arguments)
	require.NoError(e.t, err)
	return text
}

// stopsIn waits for a stop and looks at which function is on top of the stack.
func (e *editor) stopsIn(function string) {
	e.t.Helper()
	stopped := receive[*dap.StoppedEvent](e)
	e.send(&dap.StackTraceRequest{Request: e.request("stackTrace"), Arguments: dap.StackTraceArguments{
		ThreadId: stopped.Body.ThreadId, Levels: 1}})
	frames := receive[*dap.StackTraceResponse](e).Body.StackFrames
	_, bare, _ := strings.Cut(function, ".")
	if len(frames) == 0 || !strings.HasSuffix(frames[0].Name, "."+bare) {
		e.t.Fatalf("stopped (%s) in %+v, want %s", stopped.Body.Reason, frames, function)
	}
}

// disconnect ends what was launched, or lets go of what was attached to.
func (e *editor) disconnect(terminate bool) {
	e.t.Helper()
	e.send(&dap.DisconnectRequest{Request: e.request("disconnect"), Arguments: &dap.DisconnectArguments{
		TerminateDebuggee: terminate}})
	receive[*dap.DisconnectResponse](e)
}
