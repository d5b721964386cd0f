package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
)

// send returns the status and body of one request.
func (p *program) send(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, p.url+path, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
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

// asProgram in the environment makes this test binary the program.
const asProgram = "VIZ_TEST_AS_PROGRAM"

func init() {
	if os.Getenv(asProgram) != "" {
		main()
	}
}

// TestADataFolderThatIsGoneEndsTheProgramWithOneLine runs another process: what is left of a broken etcd cannot be
// ended.
func TestADataFolderThatIsGoneEndsTheProgramWithOneLine(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	flags := []string{"-listen", "127.0.0.1:0", "-flight=off", "-demo=false", "-controllers=false", "-data-dir", dir}
	child := exec.CommandContext(ctx, os.Args[0], flags...)
	child.Env = append(os.Environ(), asProgram+"=1")
	var stderr strings.Builder
	child.Stderr = &stderr
	stdout, err := child.StdoutPipe()
	require.NoError(t, errors.Join(err, child.Start()))
	line, err := bufio.NewReader(stdout).ReadString('\n')
	url, listens := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err := errors.Join(err, os.RemoveAll(dir)); err != nil || !listens {
		t.Fatalf("the first line is %q, %v", line, err)
	}
	p := &program{url: url}
	eventually.Holds(t, "the page says it", func() bool {
		_, body := p.get(t, "/viz/snapshot")
		return strings.Contains(body, "EtcdFailed")
	})
	http.DefaultClient.CloseIdleConnections()
	_ = child.Wait() // says which status it was
	said := stderr.String()
	if child.ProcessState.ExitCode() != exitError || strings.Count(said, "\n") != 1 ||
		!strings.Contains(said, dir) || !strings.Contains(said, "The folder is gone") {
		t.Errorf("got %v and %q", child.ProcessState, said)
	}
}
