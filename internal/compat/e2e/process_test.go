package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// process is a child process in a process group of its own: what it starts can be found and ended with it.
type process struct {
	cmd    *exec.Cmd
	stdout output
	stderr output
	done   chan struct{} // closed by await when the process has ended

	orphans bool // processes of the group outlived it and were killed; written by await before it closes done
}

// start starts cmd. At the end of the test it is killed with its group, if it still runs.
func start(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.stdout, &p.stderr
	cmd.WaitDelay = 5 * time.Second // for pipes that a grandchild keeps open
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", cmd, err)
	}
	go p.await()
	t.Cleanup(p.kill)
	return p
}

// await waits for the end of the process and ends whatever it left behind.
func (p *process) await() {
	_ = p.cmd.Wait() // the exit code is read from ProcessState
	// At once: as long as a member is left the group's number cannot belong to strangers, but later it may.
	p.orphans = !groupIsEmpty(p.cmd.Process.Pid)
	if p.orphans {
		killGroup(p.cmd.Process.Pid)
	}
	close(p.done)
}

// kill ends the process if it still runs, and its group with it.
func (p *process) kill() {
	select {
	case <-p.done:
	default:
		killGroup(p.cmd.Process.Pid)
		<-p.done
	}
}

// exitCode waits for the end of the process, at most within, and returns its exit status.
func (p *process) exitCode(t *testing.T, within time.Duration) int {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(within):
		t.Fatalf("%s still runs after %v; stdout:\n%s\nstderr:\n%s", p.cmd, within, p.stdout.String(), p.stderr.String())
	}
	return p.cmd.ProcessState.ExitCode()
}

// interrupt does what Ctrl-C does.
func (p *process) interrupt(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatalf("interrupt %s: %v", p.cmd, err)
	}
}

// output collects what a process writes. Safe for concurrent use.
type output struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// lines returns the complete lines written so far.
func (o *output) lines() []string {
	text := o.String()
	end := strings.LastIndexByte(text, '\n')
	if end < 0 {
		return nil
	}
	return strings.Split(text[:end], "\n")
}

// eventually asks for a fact again and again until it holds. It fails the test, with the last answer, if it does not
// within the given time.
func eventually(t testing.TB, within time.Duration, fact func() (holds bool, seen string)) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		holds, seen := fact()
		if holds {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %v; last seen: %s", within, seen)
		}
		time.Sleep(10 * time.Millisecond) // between two questions
	}
}
