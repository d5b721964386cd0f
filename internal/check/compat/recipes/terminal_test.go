//go:build unix

package recipes

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
)

const (
	ourAddress   = "127.0.0.1:8080" // the address in the documents
	proxyAddress = "127.0.0.1:8001"
)

var (
	startsViz   = regexp.MustCompile(`^go run \./cmd/viz( |$)`)
	startsProxy = regexp.MustCompile(`^kubectl proxy\b`)
	// endsSoon matches flags with which the program ends by itself.
	endsSoon  = regexp.MustCompile(`-(h|version|export)\b`)
	watches   = regexp.MustCompile(`[?&]watch=|^kubectl .* (-w|--watch)\b`)
	endItself = regexp.MustCompile(`timeoutSeconds=|\| *head|max-time|\btimeout `)
	onlyReads = regexp.MustCompile(`^(curl -s[^|]*|kubectl .*\bget .*)`)
	writes    = regexp.MustCompile(` -(X|d|-data\S*) `)

	// A reader replaces a match of ownVersion by the newest match of version in an earlier output.
	ownVersion = regexp.MustCompile(`\brv=\d+`)
	version    = regexp.MustCompile(`\bat (\d+)\b`)
)

// terminal runs a page's commands in one shell. Beside the shell it runs a program and other commands that do not end,
// as if each had a terminal of its own.
type terminal struct {
	t       *testing.T
	dir     string
	shell   *program.Process
	typed   io.Writer
	n       int               // commands so far
	real    map[string]string // actual addresses, by the addresses in the documents
	serving *program.Viz      // the program that serves the Kubernetes API; nil: none runs
	viz     *program.Viz
	starts  *step // the step whose program is not started yet
	flags   []string
	open    []opened
	version string // the last version in the output of a command that ended
}

// opened is a command that keeps running, such as a watch. finish compares the command's output.
type opened struct {
	step *step
	file string
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	x := &terminal{t: t, dir: t.TempDir(), real: map[string]string{}}
	kubectl := program.KubectlFor(t, &program.Viz{})
	require.NoError(t, os.Symlink(kubectl.Binary, filepath.Join(x.dir, "kubectl")))
	cmd := exec.Command("bash")
	cmd.Dir = root(t)
	cmd.Env = append(os.Environ(), "GOWORK=off", "TMPDIR="+t.TempDir(), "HOME="+kubectl.Home, "KUBECONFIG="+os.DevNull,
		"PATH="+x.dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} { // go would look for them below HOME
		value := require.Value(exec.Command("go", "env", name).Output())(t)
		cmd.Env = append(cmd.Env, name+"="+strings.TrimSpace(string(value)))
	}
	typed := require.Value(cmd.StdinPipe())(t)
	x.shell, x.typed = program.Start(t, cmd), typed
	return x
}

// run runs one command as a reader would. If the command ends, run compares its output with the page's.
func (x *terminal) run(s *step) {
	x.t.Helper()
	command := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(s.command), "&"))
	if startsViz.MatchString(command) && !endsSoon.MatchString(command) {
		x.startViz(s, command)
		return
	}
	x.startsNow()
	switch {
	case startsProxy.MatchString(command):
		x.startProxy(s)
	case command != strings.TrimSpace(s.command), watches.MatchString(command) && !endItself.MatchString(command):
		x.leaveOpen(s, command)
	default:
		x.toItsEnd(s, command)
	}
}

// startViz ends the running program. The new one starts before the next command. If the page shows the program's
// output, or FULL is set, the new one starts at once.
func (x *terminal) startViz(s *step, command string) {
	x.t.Helper()
	x.finish()
	command, _, _ = strings.Cut(command, "#")
	command = strings.ReplaceAll(command, "-listen "+ourAddress, "")
	flags := strings.Fields(x.addressed(command))[len(strings.Fields("go run ./cmd/viz")):]
	x.starts, x.flags = s, flags
	if len(s.want) > 0 || everywhere {
		x.startsNow()
	}
}

// startsNow starts the last program typed, if it does not run yet, and compares its output with the page's.
func (x *terminal) startsNow() {
	x.t.Helper()
	if x.starts == nil {
		return
	}
	x.viz = program.StartViz(x.t, x.flags...)
	x.real[ourAddress] = strings.TrimPrefix(x.viz.URL, "http://")
	if said := x.written(x.viz.Stdout.String()); len(x.starts.want) > 0 && !matches(x.starts.want, said) {
		x.differs(x.starts, 0, said)
	}
	if !strings.Contains(strings.Join(x.flags, " "), "-server") {
		x.serving = x.viz
	}
	x.starts = nil
}

// knowsFlags checks that the program knows the flags: it runs the program with them and -h, which only prints help.
func (x *terminal) knowsFlags(flags []string) {
	x.t.Helper()
	cmd, _ := program.VizCommand(x.t, append(flags, "-h")...)
	said, err := cmd.CombinedOutput()
	assert.True(x.t, err == nil && !strings.Contains(string(said), "not defined"), "viz %v: %v\n%s", flags, err, said)
}

// startProxy starts a program in place of the reader's cluster, and kubectl proxy for that program.
func (x *terminal) startProxy(s *step) {
	x.t.Helper()
	x.serving = program.StartViz(x.t, "-demo=false", "-controllers=false")
	proxy := program.Start(x.t, program.KubectlFor(x.t, x.serving).Command("proxy", "--port=0"))
	program.Eventually(x.t, patience, func() (bool, string) {
		said := proxy.Stdout.String()
		_, address, ok := strings.Cut(strings.TrimSpace(said), "Starting to serve on ")
		x.real[proxyAddress] = address
		return ok && strings.HasSuffix(said, "\n"), said + proxy.Stderr.String()
	})
	if said := x.written(proxy.Stdout.String()); !matches(s.want, said) {
		x.differs(s, 0, said)
	}
}

// addressed replaces the written addresses in a command by the actual ones, and the reader's version by the newest.
func (x *terminal) addressed(command string) string {
	if x.version != "" {
		command = ownVersion.ReplaceAllString(command, "rv="+x.version)
	}
	for written, address := range x.real {
		command = strings.ReplaceAll(command, written, address)
	}
	return command
}

// said returns the lines that a command has written to a file so far, as documents have them.
func (x *terminal) said(file string) []string {
	text := require.Value(os.ReadFile(file))(x.t)
	return x.written(string(text))
}

// itsOwnEnd matches a message that kubectl sometimes logs about a watch that kubectl itself has ended. The message
// depends on the order of kubectl's goroutines, so no document shows it.
var itsOwnEnd = regexp.MustCompile(`(?m)^I\d{4} .*"Warning: watch ended with error".*: context canceled.*\n`)

// written returns an output's lines as documents have them: with their addresses, without colours and itsOwnEnd.
func (x *terminal) written(said string) []string {
	for written, address := range x.real {
		said = strings.ReplaceAll(said, address, written)
	}
	return outputLines(itsOwnEnd.ReplaceAllString(colour.ReplaceAllString(said, ""), ""))
}

// enter runs a command in the shell, in the background if after is "&", and returns its status and its output's file.
func (x *terminal) enter(command, after string) (int, string) {
	x.t.Helper()
	x.n++
	file := filepath.Join(x.dir, fmt.Sprintf("output-%d", x.n))
	require.NoError(x.t, os.WriteFile(file, nil, 0o600))
	prompt := fmt.Sprintf("prompt %d ", x.n)
	require.Value(fmt.Fprintf(x.typed, "{ %s\n} >%s 2>&1 </dev/null %s\necho \"%s$?\"\n", x.addressed(command), file,
		after, prompt))(x.t)
	code := 0
	program.Eventually(x.t, 10*patience, func() (bool, string) {
		for _, line := range x.shell.Stdout.Lines() {
			if status, ok := strings.CutPrefix(line, prompt); ok {
				code, _ = strconv.Atoi(status)
				return true, ""
			}
		}
		select {
		case <-x.shell.Done:
			x.t.Fatalf("the shell has ended:\n%s", x.shell.Stderr.String())
		default:
		}
		return false, command + "\nhas not ended; it shows\n" + strings.Join(x.said(file), "\n") +
			x.shell.Stderr.String()
	})
	return code, file
}

// toItsEnd runs a command that ends. Until the output matches, it repeats a command that only reads, as a reader would.
func (x *terminal) toItsEnd(s *step, command string) {
	x.t.Helper()
	var code int
	var said []string
	if startsViz.MatchString(command) && !everywhere { // use the binary, which is built already
		viz, _ := program.VizCommand(x.t)
		command = strings.Replace(command, "go run ./cmd/viz", viz.Path, 1)
	}
	agrees := func() bool {
		var file string
		code, file = x.enter(command, "")
		said = x.said(file)
		if all := version.FindAllStringSubmatch(strings.Join(said, "\n"), -1); all != nil {
			x.version = all[len(all)-1][1]
		}
		return matches(s.want, said) && (code == 0 || len(s.want) > 0)
	}
	again := onlyReads.MatchString(command) && !writes.MatchString(command) && !*update
	if agrees() || again && eventually.Did(program.HangsAfter, agrees) {
		return
	}
	x.differs(s, code, said)
}

// leaveOpen starts a command that does not end. If the command watches, leaveOpen waits until the log has a new watch.
func (x *terminal) leaveOpen(s *step, command string) {
	x.t.Helper()
	counts := x.serving != nil && watches.MatchString(command)
	before := 0
	if counts {
		before = x.guests()
	}
	_, file := x.enter(command, "&")
	x.open = append(x.open, opened{step: s, file: file})
	if counts {
		program.Eventually(x.t, patience, func() (bool, string) {
			return x.guests() > before, command + "\nopens no watch:\n" + strings.Join(x.said(file), "\n")
		})
	}
}

// guests returns the number of watches that kubectl and curl have opened so far.
func (x *terminal) guests() (n int) {
	var log struct {
		Records []struct{ Texts map[string]string }
	}
	x.serving.Get(x.t, "/viz/records?point=WireOpened", &log)
	for _, r := range log.Records {
		agent := r.Texts["agent"]
		if strings.HasPrefix(agent, "kubectl") || strings.HasPrefix(agent, "curl") { // not the program's own clients
			n++
		}
	}
	return n
}

// finish checks the open commands' outputs, and ends the program. If the program was not started, it checks the flags.
func (x *terminal) finish() {
	x.t.Helper()
	if x.starts != nil {
		x.knowsFlags(x.flags)
		x.starts = nil
	}
	for _, o := range x.open {
		if !eventually.Did(program.HangsAfter, func() bool { return matches(o.step.want, x.said(o.file)) }) {
			x.differs(o.step, 0, x.said(o.file))
		}
	}
	x.open = nil
	if x.viz != nil {
		x.viz.Kill()
		if x.serving == x.viz {
			x.serving = nil
		}
		x.viz = nil
	}
}

// differs reports that a command printed something else or, with -update, keeps the new output.
func (x *terminal) differs(s *step, code int, said []string) {
	x.t.Helper()
	if *update {
		s.want = said
		return
	}
	x.t.Errorf("$ %s\nprints (status %d)\n%s\n\nand the text says\n%s", s.command, code, strings.Join(said, "\n"),
		strings.Join(s.want, "\n"))
}
