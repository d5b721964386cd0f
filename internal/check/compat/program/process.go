package program

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
)

// Process is a child process in a process group of its own: what it starts can be found and ended with it.
type Process struct {
	Cmd    *exec.Cmd
	Stdout Output
	Stderr Output
	Done   chan struct{} // closed by await when the process has ended
}

// Start starts cmd. At the end of the test it is killed with its group, if it still runs.
func Start(tb testing.TB, cmd *exec.Cmd) *Process {
	tb.Helper()
	p := &Process{Cmd: cmd, Done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.Stdout, &p.Stderr
	cmd.WaitDelay = 5 * time.Second // for pipes that a grandchild keeps open
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(tb, cmd.Start(), "start %s", cmd)
	go p.await()
	tb.Cleanup(p.Kill)
	return p
}

// await waits for the end of the process and ends whatever it left behind.
func (p *Process) await() {
	_ = p.Cmd.Wait() // the exit code is read from ProcessState
	// At once: as long as a member is left the group's number cannot belong to strangers, but later it may.
	p.killGroup()
	close(p.Done)
}

// Kill ends the process if it still runs, and its group with it.
func (p *Process) Kill() {
	select {
	case <-p.Done:
	default:
		p.killGroup()
		<-p.Done
	}
}

// killGroup kills every process of the group that the process leads or led.
func (p *Process) killGroup() { _ = syscall.Kill(-p.Cmd.Process.Pid, syscall.SIGKILL) }

// ExitCode waits for the end of the process, at most within, and returns its exit status.
func (p *Process) ExitCode(tb testing.TB, within time.Duration) int {
	tb.Helper()
	select {
	case <-p.Done:
	case <-time.After(within):
		tb.Fatalf("%s still runs after %v; stdout:\n%s\nstderr:\n%s", p.Cmd, within, p.Stdout.String(),
			p.Stderr.String())
	}
	return p.Cmd.ProcessState.ExitCode()
}

// Interrupt does what Ctrl-C does.
func (p *Process) Interrupt(tb testing.TB) {
	tb.Helper()
	require.NoError(tb, p.Cmd.Process.Signal(os.Interrupt), "interrupt %s", p.Cmd)
}

// Output collects what a process writes. Safe for concurrent use.
type Output struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

// String returns what was written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// Lines returns the complete lines written so far.
func (o *Output) Lines() []string {
	text := o.String()
	end := strings.LastIndexByte(text, '\n')
	if end < 0 {
		return nil
	}
	return strings.Split(text[:end], "\n")
}

// Eventually asks for a fact again and again until it holds. It fails the test, with the last answer, if it does not
// within the given time.
func Eventually(tb testing.TB, within time.Duration, fact func() (holds bool, seen string)) {
	tb.Helper()
	seen := ""
	if !eventually.Did(within, func() (holds bool) { holds, seen = fact(); return holds }) {
		tb.Fatalf("not within %v; last seen: %s", within, seen)
	}
}
