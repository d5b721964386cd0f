package main

import (
	"bufio"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
	"listwatch/internal/server/etcdnode"
)

// full returns the data folder of an etcd that has raised NOSPACE, the alarm for a used-up quota.
func full(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	require.Equal(t, exitOK, start(t, "-flight=off", "-data-dir", dir).end(t))
	etcd := require.Value(etcdnode.Start(t.Context(), etcdnode.Options{Dir: dir}))(t)
	conn := require.Value(etcd.Client().Dial(etcd.Client().Endpoints()[0]))(t)
	_, err := pb.NewMaintenanceClient(conn).Alarm(t.Context(), &pb.AlarmRequest{
		Action: pb.AlarmRequest_ACTIVATE, Alarm: pb.AlarmType_NOSPACE})
	require.NoError(t, errors.Join(err, conn.Close(), etcd.Close()))
	return dir
}

func TestAFullEtcdRefusesWritesAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	p := start(t, "-flight=off", "-demo=false", "-controllers=false", "-data-dir", full(t))
	const why = "etcd has used up its quota: start with another -data-dir"
	code, body := p.get(t, "/readyz")
	assert.True(t, code == http.StatusInternalServerError && strings.Contains(body, "[-]etcd failed: "+why),
		"readyz: %d %s", code, body)
	_, body = p.get(t, "/viz/records")
	assert.True(t, strings.Contains(body, "it takes no writes, because "+why), "the log does not say why")
	code, body = p.post(t, "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"a"}}`)
	assert.True(t, code == http.StatusInternalServerError && strings.Contains(body, "database space exceeded"),
		"a write: %d %s", code, body)
	code, body = p.get(t, "/api/v1/namespaces/default/configmaps")
	assert.True(t, code == http.StatusOK, "a read: %d %s", code, body)
	p.endsWell(t)
	assert.Equal(t, 1, strings.Count(p.stderr.String(), why), p.stderr.String())
}

// asProgram is the environment variable that makes this test binary the program.
const asProgram = "VIZ_TEST_AS_PROGRAM"

func init() {
	if os.Getenv(asProgram) != "" {
		main()
	}
}

// fill creates large configmaps until the program at url ends.
func fill(url string) {
	body := `{"metadata":{"generateName":"big-"},"data":{"x":"` + strings.Repeat("x", 300<<10) + `"}}`
	for {
		answer, err := http.Post(url+"/api/v1/namespaces/default/configmaps", "application/json",
			strings.NewReader(body))
		if err != nil {
			return
		}
		answer.Body.Close()
	}
}

// TestADataFolderThatIsGoneEndsTheProgramWithOneLine removes the folder, and writes until etcd has to create its next
// file. The program runs in another process, because a test cannot end the remains of a broken etcd.
func TestADataFolderThatIsGoneEndsTheProgramWithOneLine(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	child, stderr := child(t, asProgram+"=1", "-listen", "127.0.0.1:0", "-flight=off", "-demo=false",
		"-controllers=false", "-data-dir", dir)
	stdout, err := child.StdoutPipe()
	require.NoError(t, errors.Join(err, child.Start()))
	line, err := bufio.NewReader(stdout).ReadString('\n')
	url, listens := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	err = errors.Join(err, os.RemoveAll(dir))
	require.True(t, err == nil && listens, "the first line is %q, %v", line, err)
	go fill(url)
	p := &program{url: url}
	eventually.Holds(t, "the page says it", func() bool {
		_, body := p.get(t, "/viz/snapshot")
		return strings.Contains(body, "EtcdFailed")
	})
	http.DefaultClient.CloseIdleConnections()
	_ = child.Wait() // the test reads the status below
	said := stderr.String()
	assert.True(t, child.ProcessState.ExitCode() == exitError && strings.Count(said, "\n") == 1 &&
		strings.Contains(said, dir) && strings.Contains(said, "The folder is gone"),
		"got %v and %q", child.ProcessState, said)
}
