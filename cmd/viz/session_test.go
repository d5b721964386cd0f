package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
)

func TestASwitchIsChangedWhileTheProgramRuns(t *testing.T) {
	p := start(t, "-demo=false", "-controllers=false", "-flight=off", "-initial=list")
	if code, body := p.post(t, "/api/v1/namespaces/default/pods",
		`{"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i"}]}}`); code != http.StatusCreated {
		t.Fatalf("create: %d, %s", code, body)
	}
	began := p.how(t)
	for _, bad := range []struct {
		target, value string
		want          int
	}{{"fifo", "both", http.StatusBadRequest}, {"listen", ":0", http.StatusNotFound}, {"", "", http.StatusNotFound}} {
		if code, body := p.post(t, "/viz/knobs", fmt.Sprintf(`{"name":"switch","target":%q,"value":%q}`, bad.target,
			bad.value)); code != bad.want {
			t.Errorf("%s=%s: got %d, want %d; %s", bad.target, bad.value, code, bad.want, body)
		}
	}
	p.post(t, "/viz/knobs", `{"name":"switch","target":"fifo","value":"real"}`) // as it is
	if now := p.how(t); now.Log != began.Log {
		t.Error("started again for nothing")
	}

	p.post(t, "/viz/knobs", `{"name":"switch","target":"fifo","value":"delta"}`)
	now := p.startedAgain(t, began)
	assert.True(t, now.Switches["fifo"] == "delta" && now.Switches["initial"] == "list",
		"started again with %v", now.Switches)
	for path, want := range map[string]string{"/viz/state": `"kind":"delta"`,
		"/api/v1/namespaces/default/pods/a": `"name":"a"`} {
		// /readyz speaks of the server: the client half may begin a moment later
		eventually.Holds(t, "GET "+path+" has "+want, func() bool {
			_, body := p.get(t, path)
			return strings.Contains(body, want)
		})
	}
	p.post(t, "/viz/reset", "")
	if now := p.startedAgain(t, now); now.Switches["fifo"] != "real" {
		t.Errorf("after the reset: %v", now.Switches)
	}
	if status := p.end(t); status != exitOK {
		t.Errorf("status: got %d, want 0; stderr %q", status, p.stderr)
	}
}

func TestARecordingIsOfOneSetOfSwitches(t *testing.T) {
	p := start(t, "-demo=false", "-flight=off", "-record", filepath.Join(t.TempDir(), "a.lw.gz"))
	code, body := p.post(t, "/viz/knobs", `{"name":"switch","target":"fifo","value":"delta"}`)
	assert.Equal(t, code, http.StatusConflict, "got %d, %s", code, body)
	now := p.how(t)
	assert.Equal(t, now.Switches["fifo"], "real", "runs with %v", now.Switches)
	p.end(t)
}

// how is which log the program writes, and with which switches it runs.
type how struct {
	Log      string
	Switches map[string]string
}

func (p *program) how(t *testing.T) (now how) {
	t.Helper()
	_, body := p.get(t, "/viz/snapshot")
	require.NoError(t, json.Unmarshal([]byte(body), &now))
	return now
}

// startedAgain returns when the program writes another log than before and is ready.
func (p *program) startedAgain(t *testing.T, before how) how {
	t.Helper()
	var now how
	eventually.Holds(t, "the program starts again", func() bool {
		if now = p.how(t); now.Log == before.Log {
			return false
		}
		code, _ := p.get(t, "/readyz") // asked after, so that the new half answers
		return code == http.StatusOK
	})
	return now
}

func (p *program) post(t *testing.T, path, body string) (int, string) {
	t.Helper()
	response, err := http.Post(p.url+path, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(answer)
}
