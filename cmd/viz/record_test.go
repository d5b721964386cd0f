package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"listwatch/cmd/internal/machine"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/recording"
)

// TestWhatTheProgramRecordsAtItsLimitsIsReplayed adds watchers until the program takes no more.
func TestWhatTheProgramRecordsAtItsLimitsIsReplayed(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log.gz")
	p := start(t, "-record", name, "-flight=off")
	added := 0
	for code := http.StatusCreated; code == http.StatusCreated; added++ {
		code, _ = p.post(t, "/viz/watchers", `{"resource":"pods"}`)
	}
	p.createPod(t, "a")
	p.endsWell(t)
	require.True(t, added >= 200, "%d watchers", added)
	replayed := start(t, "-replay", name)
	if code, body := replayed.get(t, "/viz/snapshot"); code != http.StatusOK || replayed.stderr.Len() > 0 {
		t.Errorf("snapshot: %d, %.200s; stderr %q", code, body, replayed.stderr)
	}
	replayed.endsWell(t)
}

func TestARecordingThatFallsBehindEndsAloneAndSaysSo(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "log.gz")
		var stderr strings.Builder
		log := probe.NewLog(clock.RealClock{}, 4)
		stop := require.Value(startRecording(&options{record: name, end: &ending{}}, nil, log, &stderr))(t)
		synctest.Wait()
		for rv := range uint64(9) {
			probe.New(log).At(probe.RingAppend, "default/a", rv)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		said := stderr.String()
		assert.True(t, strings.Count(said, "\n") == 1 && strings.Contains(said, name) &&
			strings.Contains(said, "continues without"), "said %q", said)
		assert.NoError(t, stop(), "said before")
	})
}

// TestARecordingThatFailsAtTheEndEndsTheProgramWithThat ends a run as soon as it is ready.
func TestARecordingThatFailsAtTheEndEndsTheProgramWithThat(t *testing.T) {
	o := require.Value(parseOptions([]string{"-flight=off", "-demo=false", "-controllers=false"}, io.Discard))(t)
	o.end = &ending{}
	listener := require.Value(net.Listen("tcp", "127.0.0.1:0"))(t).(*net.TCPListener)
	defer listener.Close()
	ctx, stop := context.WithCancel(t.Context())
	etcd := require.Value(openEtcd(ctx, o))(t)
	defer etcd.close()
	host := o.host(etcd, listener, io.Discard)
	host.Record = func(*probe.Log) (func() error, error) { return func() error { return syscall.ENOSPC }, nil }
	err := machine.Serve(ctx, host, o.Options, stop)
	assert.True(t, errors.Is(err, syscall.ENOSPC), "got %v", err)
}

// readRecording is what -record left in the file.
func readRecording(t *testing.T, file string) (recording.Header, []probe.Record) {
	t.Helper()
	rec := require.Value(recording.Open(t.Context(), file))(t)
	return rec.Header, rec.Records
}

func TestASwitchIsChangedWhileTheProgramRuns(t *testing.T) {
	t.Parallel()
	p := start(t, "-demo=false", "-controllers=false", "-flight=off", "-initial=list")
	p.createPod(t, "a")
	began := p.how(t)
	for _, bad := range []struct {
		target, value string
		want          int
	}{{"fifo", "both", http.StatusBadRequest}, {"listen", ":0", http.StatusNotFound}, {"", "", http.StatusNotFound}} {
		code, body := p.post(t, "/viz/knobs", fmt.Sprintf(`{"name":"switch","target":%q,"value":%q}`, bad.target, bad.value))
		assert.True(t, code == bad.want, "%s=%s: got %d, want %d; %s", bad.target, bad.value, code, bad.want, body)
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
	now = p.startedAgain(t, now)
	assert.True(t, now.Switches["fifo"] == "real", "after the reset: %v", now.Switches)
	p.endsWell(t)
}

func TestARecordingIsOfOneSetOfSwitches(t *testing.T) {
	t.Parallel()
	p := start(t, "-demo=false", "-flight=off", "-record", filepath.Join(t.TempDir(), "a.lw.gz"))
	code, body := p.post(t, "/viz/knobs", `{"name":"switch","target":"fifo","value":"delta"}`)
	assert.Equal(t, http.StatusConflict, code, "got %d, %s", code, body)
	now := p.how(t)
	assert.Equal(t, "real", now.Switches["fifo"], "runs with %v", now.Switches)
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
		if now = p.how(t); now.Log == before.Log || now.Log == "" { // "": neither half answers
			return false
		}
		code, _ := p.get(t, "/readyz") // asked after, so that the new half answers
		return code == http.StatusOK
	})
	return now
}
