package main

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
)

// maxUnread is more changes of small pods than a stalled watcher of the page is sent: ten in its input, ten in its
// result, and what the socket buffers of both ends hold.
const maxUnread = 400

// TestOnlyTheWatcherThatDoesNotReadIsEvicted is block 4 of docs/WORKSHOP.md: page-2, registered behind page-1, gets the
// change after the dispatcher has waited for page-1, or before. What the terminal prints is the log's own order.
func TestOnlyTheWatcherThatDoesNotReadIsEvicted(t *testing.T) {
	const (
		blocked = "DispatchBlocked 1 watcher had no room"
		full    = "InputBlocked The input of page-1 is full"
		closed  = "WatcherForced page-1 does not keep up and is closed"
	)
	enters := func(watcher string) string { return "InputSent ADDED default/t-N at N enters the input of " + watcher }
	for dispatch, want := range map[string][]string{
		"sequential": {enters("informer"), blocked, full, closed, enters("page-2")},
		"two-phase":  {enters("informer"), enters("page-2"), blocked, full, closed},
	} {
		t.Run(dispatch, func(t *testing.T) {
			t.Parallel()
			p := start(t, "-demo=false", "-controllers=false", "-flight=off", "-dispatch="+dispatch)
			registered := func(n int) {
				t.Helper()
				eventually.Holds(t, "so many watchers", func() bool { return p.pods(t)["WatcherAdded"] == n })
			}
			for n := range 2 {
				registered(1 + n)
				code, body := p.post(t, "/viz/watchers", `{"resource":"pods"}`)
				require.Equal(t, http.StatusCreated, code, body)
			}
			registered(3)
			for _, knob := range []string{`{"name":"line.stall","target":"listwatch-page-1","value":"true"}`,
				`{"name":"traffic.rate","value":"20"}`} {
				code, body := p.post(t, "/viz/knobs", knob)
				require.Equal(t, http.StatusOK, code, body)
			}
			eventually.Holds(t, "a watcher is closed", func() bool { return p.pods(t)["WatcherForced"] > 0 })
			n := len(p.records(t, "RingAppend"))
			assert.True(t, n < maxUnread, "%d changes until then", n)
			rv := p.records(t, "WatcherForced")[0].RV
			eventually.Holds(t, "the dispatch is over", func() bool {
				return len(p.records(t, "DispatchFinished&rv="+rv)) > 0
			})
			query := "DispatchBlocked,InputBlocked,InputSent,WatcherForced&rv=" + rv
			_, said := p.get(t, "/viz/told?resource=pods&point="+query)
			lines, records := strings.Split(strings.TrimSpace(said), "\n"), p.records(t, query)
			require.True(t, len(lines) == len(want) && len(records) == len(want), "%s", said)
			for i, each := range want {
				line := numbers.ReplaceAllString(records[i].Point+" "+lines[i], "${1}N")
				assert.True(t, strings.HasPrefix(line, each), "line %d: got %q, want %q", i, line, each)
			}
			p.end(t)
		})
	}
}

var numbers = regexp.MustCompile(`(t-|at )\d+`)

// told is a record of the log, as far as a test reads it.
type told struct{ Point, RV string }

// records are those of the pods that a query asks for.
func (p *program) records(t *testing.T, points string) []told {
	t.Helper()
	_, body := p.get(t, "/viz/records?resource=pods&point="+points)
	var log struct{ Records []told }
	require.NoError(t, json.Unmarshal([]byte(body), &log), body)
	return log.Records
}
