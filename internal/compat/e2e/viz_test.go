package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	readyWithin = 30 * time.Second // a race build on a busy machine of two cores
	endsWithin  = 10 * time.Second
)

// viz is the running program.
type viz struct {
	*process
	url string // http://127.0.0.1:PORT
	tmp string // where it makes its temporary files
}

// vizCommand returns the program with flags, and the folder it will take for temporary files.
func vizCommand(t testing.TB, flags ...string) (*exec.Cmd, string) {
	t.Helper()
	tmp := t.TempDir()
	cmd := exec.Command(built(t, vizBinary), flags...)
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "TMP="+tmp, "TEMP="+tmp)
	return cmd, tmp
}

// startViz starts the program on a free port of loopback and returns when it has said that it is ready.
func startViz(t testing.TB, flags ...string) *viz {
	t.Helper()
	cmd, tmp := vizCommand(t, append([]string{"-listen", "127.0.0.1:0"}, flags...)...)
	v := &viz{process: start(t, cmd), tmp: tmp}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("viz wrote to stderr:\n%s", v.stderr.String())
		}
	})
	eventually(t, readyWithin, func() (bool, string) { return v.ready(t) })
	return v
}

// ready reports whether the ready line stands on stdout, and takes the URL from it.
func (v *viz) ready(t testing.TB) (bool, string) {
	t.Helper()
	select {
	case <-v.done:
		t.Fatalf("the program ended before it was ready: %v", v.cmd.ProcessState)
	default:
	}
	for _, line := range v.stdout.lines() {
		if url, ok := strings.CutPrefix(line, "listening on "); ok {
			v.url = url
			return true, line
		}
	}
	return false, "stdout:\n" + v.stdout.String() + "stderr:\n" + v.stderr.String()
}

// get returns the body of a page of the program.
func (v *viz) get(t *testing.T, path string, into any) {
	t.Helper()
	response, err := http.Get(v.url + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s", path, response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
}

// kubectl is one user's kubectl against one server.
type kubectl struct {
	binary, server, home string
}

// kubectlFor returns a kubectl that has never seen any server: its discovery cache is empty.
func kubectlFor(t *testing.T, v *viz) *kubectl {
	t.Helper()
	return &kubectl{binary: built(t, kubectlBinary), server: v.url, home: t.TempDir()}
}

func (k *kubectl) command(args ...string) *exec.Cmd {
	cmd := exec.Command(k.binary, append([]string{"-s", k.server}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+k.home, "USERPROFILE="+k.home, "KUBECONFIG="+os.DevNull)
	return cmd
}

// run returns what kubectl prints. Anything but exit status 0 fails the test.
func (k *kubectl) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := k.command(args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kubectl %s: %v\nstdout:\n%s\nstderr:\n%s", strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out)
}

// create creates what manifest says.
func (k *kubectl) create(t *testing.T, manifest string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := k.run(t, "create", "-f", file); !strings.Contains(out, "created") {
		t.Fatalf("kubectl create said %q", out)
	}
}

// podManifest returns a pod that runs until it is deleted.
func podManifest(name string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata:\n  name: " + name + "\n  labels: {app: " + name + "}\n" +
		"spec:\n  containers:\n  - name: main\n    image: example.test/main:1\n"
}
