package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/recording"
)

// replays waits until the page replays a recording and has its last record.
func (p *page) replays(t *testing.T, records []probe.Record) {
	t.Helper()
	last := records[len(records)-1].Seq
	p.stands(t, fmt.Sprint("want the recording up to ", last), func(m moment) bool {
		return m.Mode == "replay" && m.Head == last
	})
}

// writeRecording writes the records to a recording and returns its file's name.
func writeRecording(t *testing.T, records []probe.Record) (name string) {
	t.Helper()
	file := require.Value(os.CreateTemp(t.TempDir(), "*.lw.gz"))(t)
	require.NoError(t, recording.WriteAll(file, recording.NewHeader(time.Unix(0, 0), nil), records))
	require.NoError(t, file.Close())
	return file.Name()
}

// reel is a recording that a test writes record by record. Its records are one millisecond apart.
type reel []probe.Record

func (r *reel) add(point probe.Point, subject string, rv int, args ...int) {
	n := len(*r)
	next := probe.Record{Seq: uint64(n + 1), Time: time.Duration(n) * time.Millisecond, Resource: "pods", Point: point,
		Subject: subject, Type: "MODIFIED", Key: "/registry/pods/default/a", RV: uint64(rv)}
	copy(next.Args[:], args)
	*r = append(*r, next)
}

// viz is the running program. The files of this package add the methods that their tests need.
type viz struct{ *program.Viz }

// startViz starts the program on a free port of loopback, and returns after the program's ready line.
func startViz(t testing.TB, flags ...string) *viz {
	t.Helper()
	return &viz{program.StartViz(t, flags...)}
}

// still starts a program without a demo and controllers, opens its page and waits until the page is live.
func still(t testing.TB) (*viz, *page) {
	t.Helper()
	v := startViz(t, "-demo=false", "-controllers=false")
	p := openPage(t, v.URL)
	p.live(t, v)
	return v, p
}

// live waits until the page's feed is open and the page shows the record that is the newest at the call. The server
// renders the page's first attributes, so these alone do not prove that the page's script runs.
func (p *page) live(t testing.TB, v *viz) {
	t.Helper()
	p.until(t, `$("#mode").dataset.state === "live" && Number(document.body.dataset.seq) >= %d`, v.seq(t))
}

// kubectlFor returns a kubectl that has never seen any server: its discovery cache is empty.
func kubectlFor(t testing.TB, v *viz) *program.Kubectl {
	t.Helper()
	return program.KubectlFor(t, v.Viz)
}

// createPod creates a pod as a client other than kubectl would. The request waits only for etcd.
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

// post sends body as JSON to one of the page's URLs, which must answer 2xx.
func post(b testing.TB, url string, body any) {
	b.Helper()
	data := require.Value(json.Marshal(body))(b)
	response := require.Value(http.Post(url, "application/json", bytes.NewReader(data)))(b)
	defer response.Body.Close()
	require.True(b, response.StatusCode < 300, "POST %s %s: %s", url, data, response.Status)
}
