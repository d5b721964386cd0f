package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"listwatch/internal/eventually"
)

// send returns the status and body of one request.
func (p *program) send(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(answer)
}

func TestAFullEtcdRefusesWritesUntilSomethingIsDeleted(t *testing.T) {
	t.Parallel()
	p := start(t, "-flight=off", "-demo=false", "-controllers=false", "-etcd-quota=4194304")
	const configMaps = "/api/v1/namespaces/default/configmaps"
	configMap := func(name string, kB int) string {
		return fmt.Sprintf(`{"metadata":{"name":%q},"data":{"a":%q}}`, name, strings.Repeat("x", kB<<10))
	}
	ready := func() bool { code, _ := p.get(t, "/readyz"); return code == http.StatusOK }
	eventually.Holds(t, "ready", ready)
	code, body := 0, ""
	for i := 0; i < 100 && (code == 0 || code == http.StatusCreated); i++ {
		code, body = p.send(t, "POST", configMaps, configMap(fmt.Sprint("c", i), 300))
	}
	if code != http.StatusInternalServerError || !strings.Contains(body, "etcdserver: mvcc: database space exceeded") {
		t.Fatalf("got %d %s", code, body)
	}
	// For what was refused there was no room; for something smaller there may be, until that is full, too.
	n, failed, told := 0, false, false
	eventually.Holds(t, "readyz fails, and the page says why", func() bool {
		n++
		p.send(t, "POST", configMaps, configMap(fmt.Sprint("small", n), 20))
		_, body := p.get(t, "/readyz")
		failed = failed || strings.Contains(body, "[-]etcd failed: etcdserver: mvcc: database space exceeded\n")
		_, body = p.get(t, "/viz/records")
		told = told || strings.Contains(body, "it takes no writes, etcdserver: mvcc: database space exceeded")
		return failed && told
	})
	if code, _ := p.get(t, "/livez"); code != http.StatusOK {
		t.Errorf("livez: %d", code)
	}
	if code, body := p.send(t, "DELETE", configMaps, ""); code != http.StatusOK {
		t.Fatalf("delete: %d %s", code, body)
	}
	// Something small may fit before the space of what was deleted has come back.
	eventually.Holds(t, "something large can be created again", func() bool {
		code, _ := p.send(t, "POST", configMaps, configMap("again", 300))
		return code == http.StatusCreated
	})
	eventually.Holds(t, "ready again", ready)
	if status := p.end(t); status != exitOK {
		t.Errorf("status: got %d; stderr %q", status, p.stderr)
	}
}

func TestADataFolderThatIsGoneEndsTheProgramWithOneLine(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	p := start(t, "-flight=off", "-demo=false", "-controllers=false", "-data-dir", dir)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the page says it", func() bool {
		_, body := p.get(t, "/viz/snapshot")
		return strings.Contains(body, "EtcdFailed")
	})
	http.DefaultClient.CloseIdleConnections()
	if status := <-p.status; status != exitError {
		t.Errorf("status: got %d, want 1", status)
	}
	if said := p.stderr.String(); !strings.Contains(said, dir) || !strings.Contains(said, "The folder is gone") || strings.Count(said, "\n") != 1 {
		t.Errorf("stderr: %q", said)
	}
}
