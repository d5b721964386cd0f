package program

import (
	"encoding/json"
	"listwatch/internal/check/require"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// HangsAfter is how long anything may take, also on a busy machine. How soon the program is ready, and ends, is held
// where time is a bubble's (cmd/viz).
const HangsAfter = 5 * time.Minute

// Viz is the running program.
type Viz struct {
	*Process
	URL string // http://127.0.0.1:PORT
	Tmp string // where it makes its temporary files
}

// VizCommand returns the program with flags, and the folder it will take for temporary files.
func VizCommand(tb testing.TB, flags ...string) (*exec.Cmd, string) {
	tb.Helper()
	tmp := tb.TempDir()
	cmd := exec.Command(require.Value(vizBinary())(tb), flags...)
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "TMP="+tmp, "TEMP="+tmp)
	return cmd, tmp
}

// StartViz starts the program on a free port of loopback and returns when it has said that it is ready.
func StartViz(tb testing.TB, flags ...string) *Viz {
	tb.Helper()
	cmd, tmp := VizCommand(tb, append([]string{"-listen", "127.0.0.1:0"}, flags...)...)
	v := &Viz{Process: Start(tb, cmd), Tmp: tmp}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("viz wrote to stderr:\n%s", v.Stderr.String())
		}
	})
	Eventually(tb, HangsAfter, func() (bool, string) { return v.ready(tb) })
	return v
}

// ready reports whether the ready line stands on stdout, and takes the URL from it.
func (v *Viz) ready(tb testing.TB) (bool, string) {
	tb.Helper()
	select {
	case <-v.Done:
		tb.Fatalf("the program ended before it was ready: %v\n%s", v.Cmd.ProcessState, v.Stderr.String())
	default:
	}
	for _, line := range v.Stdout.Lines() {
		if url, ok := strings.CutPrefix(line, "listening on "); ok {
			v.URL = url
			return true, line
		}
	}
	return false, "stdout:\n" + v.Stdout.String() + "stderr:\n" + v.Stderr.String()
}

// Get decodes the JSON at a path of the program.
func (v *Viz) Get(tb testing.TB, path string, into any) {
	tb.Helper()
	client := &http.Client{Timeout: HangsAfter}
	response, err := client.Get(v.URL + path)
	require.NoError(tb, err)
	defer response.Body.Close()
	require.True(tb, response.StatusCode == http.StatusOK, "GET %s: %s", path, response.Status)
	require.NoError(tb, json.NewDecoder(response.Body).Decode(into), "GET %s", path)
}

// Points returns how often each point was reported, over all resources.
func (v *Viz) Points(tb testing.TB) map[string]int {
	tb.Helper()
	var snapshot struct {
		State struct {
			Resources map[string]struct{ Points map[string]int }
		}
	}
	v.Get(tb, "/viz/snapshot", &snapshot)
	sum := map[string]int{}
	for _, resource := range snapshot.State.Resources {
		for point, n := range resource.Points {
			sum[point] += n
		}
	}
	return sum
}
