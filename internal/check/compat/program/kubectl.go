package program

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Kubectl is one user's kubectl against one server.
type Kubectl struct {
	Binary string
	Server string
	Home   string // holds the discovery cache
}

// KubectlFor returns a kubectl that has never seen any server: its discovery cache is empty.
func KubectlFor(tb testing.TB, v *Viz) *Kubectl {
	tb.Helper()
	return &Kubectl{Binary: built(tb, kubectlBinary), Server: v.URL, Home: tb.TempDir()}
}

// OldKubectl returns the path of a kubectl of 1.26.
func OldKubectl(tb testing.TB) string {
	tb.Helper()
	return built(tb, oldKubectlBinary)
}

// Command returns kubectl with args, not yet started. It reads no configuration of the person who runs the tests.
func (k *Kubectl) Command(args ...string) *exec.Cmd {
	cmd := exec.Command(k.Binary, append([]string{"-s", k.Server}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+k.Home, "USERPROFILE="+k.Home, "KUBECONFIG="+os.DevNull)
	return cmd
}

// Run returns what kubectl prints. Anything but exit status 0 fails the test.
func (k *Kubectl) Run(tb testing.TB, args ...string) string {
	tb.Helper()
	p := Start(tb, k.Command(args...))
	if code := p.ExitCode(tb, HangsAfter); code != 0 {
		tb.Fatalf("kubectl %s: exit status %d\nstdout:\n%s\nstderr:\n%s", strings.Join(args, " "), code,
			p.Stdout.String(), p.Stderr.String())
	}
	return p.Stdout.String()
}
