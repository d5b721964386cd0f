// Package program builds and starts the processes that the tests of this module use: cmd/viz, kubectl, etcd,
// kube-apiserver and others. Of cmd/viz it uses only the contracts: flags, the ready line, URLs.
//
// Binaries are kept in bin/compat between runs. Race builds of the tests use a race build of the program.
package program

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"

	"listwatch/internal/check/bubble"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
)

// Process is a child process in a process group of its own, so that its own children end with it.
type Process struct {
	Cmd    *exec.Cmd
	Stdout Output
	Stderr Output
	Done   chan struct{} // closed by await when the process has ended
}

// Start starts cmd, or ends the test. The test's cleanup kills the process and its group if they still run.
func Start(tb testing.TB, cmd *exec.Cmd) *Process {
	tb.Helper()
	p := &Process{Cmd: cmd, Done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.Stdout, &p.Stderr
	cmd.WaitDelay = 5 * time.Second // limits the wait for pipes that a grandchild keeps open
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(tb, cmd.Start(), "start %s", cmd)
	go p.await()
	tb.Cleanup(p.Kill)
	return p
}

// await waits for the end of the process, and kills the rest of its group.
func (p *Process) await() {
	_ = p.Cmd.Wait() // ExitCode takes the status from ProcessState
	// Kill the group at once: while a member is left, no other process can get the group's number.
	p.killGroup()
	close(p.Done)
}

// Kill kills the process, if it still runs, and its group, and waits for the end.
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

// ExitCode waits for the end of the process and returns its exit status. After the time within, it ends the test.
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

// Interrupt sends SIGINT, as Ctrl-C does.
func (p *Process) Interrupt(tb testing.TB) {
	tb.Helper()
	require.NoError(tb, p.Cmd.Process.Signal(os.Interrupt), "interrupt %s", p.Cmd)
}

// Output collects the output of a process. It is safe for concurrent use.
type Output struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

// String returns the output so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// Lines returns the complete lines so far.
func (o *Output) Lines() []string {
	text := o.String()
	end := strings.LastIndexByte(text, '\n')
	if end < 0 {
		return nil
	}
	return strings.Split(text[:end], "\n")
}

// Eventually repeats fact until holds is true. If that takes longer than within, Eventually ends the test and reports
// the last seen.
func Eventually(tb testing.TB, within time.Duration, fact func() (holds bool, seen string)) {
	tb.Helper()
	seen := ""
	if !eventually.Did(within, func() (holds bool) { holds, seen = fact(); return holds }) {
		tb.Fatalf("not within %v; last seen: %s", within, seen)
	}
}

// The first test that needs a binary builds it.
var (
	vizBinary     = sync.OnceValues(func() (string, error) { return build("../../../../cmd/viz", ".", bubble.Race) })
	kubectlBinary = sync.OnceValues(func() (string, error) { return build("../cmd/kubectl", ".", false) })
)

// Build builds the program and today's kubectl now instead of at first use.
func Build() error {
	_, err := vizBinary()
	_, other := kubectlBinary()
	return errors.Join(err, other)
}

// folder holds the binaries, inside the checkout; the path is relative to a test's folder.
const folder = "../../../../bin/compat"

// BuildOf builds the package source with the go.mod in dir, and returns the binary's path. A failure ends the test.
func BuildOf(tb testing.TB, dir, source string) string {
	tb.Helper()
	return require.Value(build(dir, source, false))(tb)
}

// build builds a binary, with the race detector if race is true. go build leaves an up-to-date binary alone.
func build(dir, source string, race bool) (string, error) {
	name := path.Base(source)
	if strings.HasPrefix(source, ".") {
		name = path.Base(dir)
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	args := []string{"build"}
	if race {
		folder = filepath.Join(folder, "race")
		args = append(args, "-race")
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	// Tests of several packages run at once and need the same file.
	lock, err := fileutil.LockFile(filepath.Join(folder, name+".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", fmt.Errorf("lock the binary of %s: %w", name, err)
	}
	defer lock.Close()
	binary := filepath.Join(folder, name)
	cmd := exec.Command("go", append(args, "-o", binary, source)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return binary, nil
}

// Kubectl is one user's kubectl for one server.
type Kubectl struct {
	Binary string
	Server string
	Home   string // holds the discovery cache
}

// KubectlFor returns a kubectl that has never seen any server: its discovery cache is empty.
func KubectlFor(tb testing.TB, v *Viz) *Kubectl {
	tb.Helper()
	return &Kubectl{Binary: require.Value(kubectlBinary())(tb), Server: v.URL, Home: tb.TempDir()}
}

// Command returns kubectl with args, not yet started. This kubectl ignores the developer's own configuration.
func (k *Kubectl) Command(args ...string) *exec.Cmd {
	cmd := exec.Command(k.Binary, append([]string{"-s", k.Server}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+k.Home, "USERPROFILE="+k.Home, "KUBECONFIG="+os.DevNull)
	return cmd
}

// Run returns what kubectl writes to stdout. It ends the test unless the exit status is 0.
func (k *Kubectl) Run(tb testing.TB, args ...string) string {
	tb.Helper()
	p := Start(tb, k.Command(args...))
	if code := p.ExitCode(tb, HangsAfter); code != 0 {
		tb.Fatalf("kubectl %s: exit status %d\nstdout:\n%s\nstderr:\n%s", strings.Join(args, " "), code,
			p.Stdout.String(), p.Stderr.String())
	}
	return p.Stdout.String()
}

// StartKubectlProxy starts kubectl proxy with flags, and returns its address after the server behind it is ready.
func StartKubectlProxy(tb testing.TB, flags []string) (address string) {
	kubectl := KubectlFor(tb, &Viz{})
	cmd := exec.Command(kubectl.Binary, append(flags, "proxy", "--port=0")...)
	cmd.Env = kubectl.Command().Env
	proxy := Start(tb, cmd)
	Eventually(tb, HangsAfter, func() (bool, string) {
		said := proxy.Stdout.String()
		at, ok := strings.CutPrefix(strings.TrimSpace(said), "Starting to serve on ")
		address = "http://" + at
		if !ok {
			return false, said + proxy.Stderr.String()
		}
		for _, path := range []string{"/readyz", "/api/v1/namespaces/default"} {
			response, err := http.Get(address + path)
			if err != nil {
				return false, err.Error()
			}
			response.Body.Close()
			if response.StatusCode != http.StatusOK {
				return false, path + ": " + response.Status
			}
		}
		return true, ""
	})
	return address
}
