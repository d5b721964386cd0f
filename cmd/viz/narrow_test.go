package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"listwatch/cmd/internal/machine"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
	"listwatch/internal/server/mvcc"
	"listwatch/internal/server/pipenet"
)

// TestAConsoleIsEvictedAfterAsManyFramesInATab lets a console stop reading behind a port, and in a machine without
// sockets such as cmd/tab runs: what fits into its line differs by a quarter at most.
func TestAConsoleIsEvictedAfterAsManyFramesInATab(t *testing.T) {
	t.Parallel()
	p := start(t, "-demo=false", "-flight=off")
	behindPort := framesUntilEviction(t, http.DefaultClient, p.url)
	p.end(t)

	var network pipenet.Network
	ctx, end := context.WithCancel(t.Context())
	ready, ended := make(chan bool), make(chan error)
	go func() {
		ended <- machine.Serve(ctx, &machine.Host{
			Etcd:  machine.Etcd{Client: mvcc.New(clock.RealClock{})},
			Base:  &url.URL{Scheme: "http", Host: "localhost"},
			Lines: network.Lines,
			Serve: network.Serve,
			Say:   func(line string) { t.Log(line) },
		}, machine.Options{Controllers: true, Modes: machine.Today(), LogSize: minLogSize, Clock: "real"},
			func() { close(ready) })
	}()
	<-ready
	page := network.Client()
	inTab := framesUntilEviction(t, page, "http://localhost")
	page.CloseIdleConnections()
	end()
	require.NoError(t, <-ended)
	t.Logf("frames until the eviction: %d behind a port, %d in a tab", behindPort, inTab)
	assert.True(t, 4*inTab >= 3*behindPort && 4*inTab <= 5*behindPort,
		"a console that reads nothing is evicted after %d frames behind a port, and %d in a tab", behindPort, inTab)
}

// framesUntilEviction opens a watch in the console of a program without traffic, stops reading, lets pods change until
// the server closes the watch, reads on, and returns how many frames there were.
func framesUntilEviction(t *testing.T, client *http.Client, base string) (frames int) {
	t.Helper()
	post := func(path, body string) *http.Response {
		response, err := client.Post(base+path, "application/json", strings.NewReader(body))
		require.NoError(t, err)
		require.Equal(t, response.StatusCode, http.StatusOK, "POST %s %s", path, body)
		return response
	}
	knob := func(name, target, value string) {
		post("/viz/knobs", fmt.Sprintf(`{"name":%q,"target":%q,"value":%q}`, name, target, value)).Body.Close()
	}
	answer := post("/viz/console", `{"request":"GET /api/v1/namespaces/default/pods?watch=true"}`)
	defer answer.Body.Close()
	var said struct {
		Agent, End string
		Size       int
	}
	lines := json.NewDecoder(answer.Body)
	require.NoError(t, lines.Decode(&said))
	agent := said.Agent
	knob("line.stall", agent, "true")
	knob("traffic.rate", "", "50")
	eventually.Holds(t, agent+" is evicted", func() bool {
		response, err := client.Get(base + "/viz/records?point=WatcherForced")
		require.NoError(t, err)
		defer response.Body.Close()
		var found struct{ Records []json.RawMessage }
		require.NoError(t, json.NewDecoder(response.Body).Decode(&found))
		return len(found.Records) > 0
	})
	knob("traffic.rate", "", "0")
	knob("line.stall", agent, "false")
	for said.End == "" {
		said.Size = 0
		require.NoError(t, lines.Decode(&said))
		if said.Size > 0 {
			frames++
		}
	}
	return frames
}
