package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

// viz is the running program, with what the tests of this package ask of it: their files add the questions.
type viz struct{ *program.Viz }

// startViz starts the program on a free port of loopback and returns when it has said that it is ready.
func startViz(t testing.TB, flags ...string) *viz {
	t.Helper()
	return &viz{program.StartViz(t, flags...)}
}

// still starts a program in which nothing happens by itself, and opens its stage, live.
func still(t testing.TB) (*viz, *page) {
	t.Helper()
	v := startViz(t, "-demo=false", "-controllers=false")
	p := openPage(t, v.URL)
	p.live(t, v)
	return v, p
}

// live waits until the page's feed is open, and the page shows the newest record there was when it was asked. The
// server draws the first picture, so the attributes alone do not prove that the page is awake.
func (p *page) live(t testing.TB, v *viz) {
	t.Helper()
	p.until(t, `$("#mode").dataset.state === "live" && Number(document.body.dataset.seq) >= %d`, v.seq(t))
}

// kubectlFor returns a kubectl that has never seen any server: its discovery cache is empty.
func kubectlFor(t testing.TB, v *viz) *program.Kubectl {
	t.Helper()
	return program.KubectlFor(t, v.Viz)
}

// create creates what manifest says, by kubectl.
func create(t testing.TB, k *program.Kubectl, manifest string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	require.NoError(t, os.WriteFile(file, []byte(manifest), 0o600))
	if out := k.Run(t, "create", "-f", file); !strings.Contains(out, "created") {
		t.Fatalf("kubectl create said %q", out)
	}
}

// createPod creates a pod as a client does that is no kubectl. The request waits for etcd and for nothing else.
func (v *viz) createPod(t testing.TB, name string) {
	t.Helper()
	client := &http.Client{Timeout: patience}
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q},"spec":{"containers":[`+
		`{"name":"c","image":"example.test/c:1"}]}}`, name)
	response, err := client.Post(v.URL+"/api/v1/namespaces/default/pods", "application/json", strings.NewReader(body))
	require.NoError(t, err)
	response.Body.Close()
	require.True(t, response.StatusCode == http.StatusCreated, "create %s: %s", name, response.Status)
}

// podManifest returns a pod that runs until it is deleted.
func podManifest(name string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata:\n  name: " + name + "\n  labels: {app: " + name + "}\n" +
		"spec:\n  containers:\n  - name: main\n    image: example.test/main:1\n"
}

// post sends a command of the page.
func post(b testing.TB, url string, body any) {
	b.Helper()
	data, err := json.Marshal(body)
	require.NoError(b, err)
	response, err := http.Post(url, "application/json", bytes.NewReader(data))
	require.NoError(b, err)
	defer response.Body.Close()
	require.True(b, response.StatusCode < 300, "POST %s %s: %s", url, data, response.Status)
}
