package program

import (
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"listwatch/internal/check/require"
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
	return &Kubectl{Binary: require.Value(kubectlBinary())(tb), Server: v.URL, Home: tb.TempDir()}
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

// StartKubectlProxy starts kubectl proxy, and returns where it is when the server behind it is ready.
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
