package sandboxtest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"listwatch/docs"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// read is a request and its expected response. In query, VERSION is the version of the third of four objects, FUTURE a
// version not yet reached, TOKEN a token for the next page, and GONE the token in the 410 for an older token.
type read struct {
	query string
	code  int
	waits time.Duration // the server's wait before it responds
	says  string        // part of the response, or of a watch's first frame; "": the watch sends no frame
	exact bool          // whether the list's version is VERSION or TOKEN's; otherwise it may be later
}

const (
	state  = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
	events = "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
	most   = 3 * time.Second // the maximum time for which a cache waits for a version
)

// reads holds the rows of docs/REFERENCE.md, by table and first cells. A row has the response for a kind with a cache
// and, if it differs, the response for events, which have no cache.
var reads = map[string][]read{
	"GET `\"\"`":  {{query: "/c", code: 200, says: `"c"`}},
	"GET `\"0\"`": {{query: "/c?resourceVersion=0", code: 200, says: `"c"`}},
	"GET `N`":     {{query: "/c?resourceVersion=VERSION", code: 200, says: `"c"`}},

	"LIST `\"\"` –":                           {{query: "?", code: 200, says: `"c"`}},
	"LIST `\"0\"` – or NotOlderThan":          {{query: "?resourceVersion=0", code: 200, says: `"c"`}},
	"LIST `N` – (no `limit`) or NotOlderThan": {{query: "?resourceVersion=VERSION", code: 200, says: `"c"`}},
	"LIST `N` – with `limit`": {{query: "?resourceVersion=VERSION&limit=2", code: 200, says: `"b"`,
		exact: true}},
	"LIST `N` Exact": {{query: "?resourceVersion=VERSION&resourceVersionMatch=Exact", code: 200, says: `"b"`,
		exact: true}},
	"LIST – `continue` token": {{query: "?continue=TOKEN", code: 200, says: `"c"`,
		exact: true}},
	"LIST – a `continue` token from a 410 (token version -1)": {{query: "?continue=GONE", code: 200, says: `"c"`}},

	"WATCH `\"\"` `true`, or absent": {{query: "?watch=1" + state, code: 200, says: `"a"`}},
	"WATCH `\"0\"` `true`, or absent": {{query: "?watch=1&resourceVersion=0", code: 200,
		says: `"a"`}},
	"WATCH `N` absent or `false`": {{query: "?watch=1&resourceVersion=VERSION", code: 200,
		says: `"c"`}},
	"WATCH `N`, newer than the server absent or `false`": {{query: "?watch=1&resourceVersion=FUTURE", code: 200}},
	"WATCH `N`, after which the ring may lack an event absent or `false`": {{
		query: "?watch=1&resourceVersion=1", code: 200, says: `"code":410`}},
	"WATCH `N` `true`":      {{query: "?watch=1&resourceVersion=VERSION" + state, code: 200, says: `"a"`}},
	"WATCH `\"\"` `false`":  {{query: "?watch=1" + events, code: 200}},
	"WATCH `\"0\"` `false`": {{query: "?watch=1&resourceVersion=0" + events, code: 200}},

	"LIST at `\"0\"` with a `limit`": {
		{query: "?resourceVersion=0&limit=1", code: 200, says: `"c"`},
		{query: "?resourceVersion=0&limit=1", code: 200, says: `"continue":"`}},
	"GET or LIST at a version that is not reached": {
		{query: "?resourceVersion=FUTURE", code: 504, waits: most, says: `"retryAfterSeconds":1`},
		{query: "?resourceVersion=FUTURE", code: 504, says: `"ResourceVersionTooLarge",` +
			`"message":"Too large resource version"}]},`}},
	"WATCH that begins with the state, at a version that is not reached": {
		{query: "?watch=1&resourceVersion=FUTURE" + state, code: 200, waits: most, says: `"code":504`},
		{query: "?watch=1&resourceVersion=FUTURE" + state, code: 200, says: `"code":504`}},
}

// rows returns the keys of the tables' rows: the table's name and the first one or two cells, or the first cell alone.
func rows(t *testing.T) (found []string) {
	t.Helper()
	text := require.Value(docs.FS().Open("REFERENCE.md"))(t)
	defer text.Close()
	table, cells := "", 0
	for line := range strings.Lines(string(require.Value(io.ReadAll(text))(t))) {
		switch {
		case strings.HasPrefix(line, "### "):
			table, cells = strings.Fields(line)[1], 2
			if table == "GET" {
				cells = 1
			}
		case (table == "GET" || table == "LIST" || table == "WATCH") && strings.HasPrefix(line, "| ") &&
			!strings.HasPrefix(line, "| `resourceVersion`"):
			row := strings.Split(strings.Trim(line, "| \n"), " | ")
			found = append(found, table+" "+unlinked(strings.Join(row[:cells], " ")))
		case strings.HasPrefix(line, "| GET") || strings.HasPrefix(line, "| LIST") ||
			strings.HasPrefix(line, "| WATCH"):
			row, _, _ := strings.Cut(line[2:], " |") // a row of the table of kinds without a cache
			found = append(found, row)
		}
	}
	return found
}

// unlinked replaces the first link in a text by the link's own text.
func unlinked(text string) string {
	before, rest, found := strings.Cut(text, "[")
	name, after, _ := strings.Cut(rest, "](")
	_, after, _ = strings.Cut(after, ")")
	if !found {
		return text
	}
	return before + name + after
}

// ask sends a request. It returns the status, the time taken, and the body or, of a watch, the first frame.
func (w *Fixture) ask(t *testing.T, method, path, body string) (code int, took time.Duration, says string) {
	t.Helper()
	began := time.Now()
	request := require.Value(http.NewRequestWithContext(t.Context(), method, "http://pipe"+path,
		strings.NewReader(body)))(t)
	request.Header.Set("Content-Type", "application/json")
	response := require.Value(w.HTTP.Do(request))(t)
	defer response.Body.Close()
	if strings.Contains(path, "watch=") {
		says, _ = bufio.NewReader(response.Body).ReadString('\n')
	} else {
		says = string(require.Value(io.ReadAll(response.Body))(t))
	}
	return response.StatusCode, time.Since(began), says
}

// TestWhatReadsGetIsWhatTheTablesSay sends the requests of every row in docs/REFERENCE.md's tables of reads and checks
// the responses, for a kind with a cache and for events, which have no cache.
func TestWhatReadsGetIsWhatTheTablesSay(t *testing.T) {
	asked := append(slices.Collect(maps.Keys(reads)), "GET any, cache not ready") // checkReads tests it last
	assert.EqualSlices(t, slices.Sorted(slices.Values(asked)), slices.Sorted(slices.Values(rows(t))), "rows")
	for i, resource := range []string{"configmaps", "events"} {
		t.Run(resource, func(t *testing.T) {
			Run(t, 1<<16, func(t *testing.T, w *Fixture) {
				w.checkReads(t, "/api/v1/namespaces/default/"+resource, i)
			})
		})
	}
}

// meta decodes the version and the token of an object, a list or a Status.
type meta struct {
	Metadata struct{ ResourceVersion, Continue string }
}

// script runs an operator's commands one after the other.
func (w *Fixture) script(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		require.NoError(t, w.Do(t.Context(), strings.Fields(line)...))
	}
}

func (w *Fixture) checkReads(t *testing.T, path string, which int) {
	read := func(method, query, body string) (seen meta) {
		_, _, says := w.ask(t, method, path+query, body)
		require.NoError(t, json.Unmarshal([]byte(says), &seen), says)
		return seen
	}
	create := func(name string) string {
		return read("POST", "", fmt.Sprintf(`{"metadata":{"name":%q},"involvedObject":{"namespace":"default"}}`,
			name)).Metadata.ResourceVersion
	}
	compact := func() {
		require.Value(w.Pipeline.Server.Compact(t.Context()))(t)
		time.Sleep(time.Minute) // until the compaction has reached the caches; the bubble's time costs nothing
	}
	create("a")
	old := read("GET", "?limit=1", "")
	create("b0")
	compact()
	w.script(t, "server stop", "server start") // the next server's caches do not have version 1
	time.Sleep(time.Minute)                    // until the caches are filled
	gone := read("GET", "?continue="+url.QueryEscape(old.Metadata.Continue), "")
	values := map[string]string{"VERSION": create("b"), "FUTURE": "1000000",
		"GONE": url.QueryEscape(gone.Metadata.Continue)}
	create("c")
	page := read("GET", "?limit=1", "")
	values["TOKEN"] = url.QueryEscape(page.Metadata.Continue)
	for row, each := range reads {
		r := each[min(which, len(each)-1)]
		query := r.query
		for name, value := range values {
			query = strings.ReplaceAll(query, "="+name, "="+value)
		}
		if strings.Contains(query, "watch=1") {
			query += "&timeoutSeconds=5"
		}
		code, took, says := w.ask(t, "GET", path+query, "")
		late := took - r.waits
		if r.says == "" {
			late = 0 // the response ends only when the watch's time is over
		}
		assert.True(t, code == r.code && strings.Contains(says, r.says) && (r.says != "" || says == "") && late >= 0 &&
			late < time.Second, "%s: got %d after %v: %.300s", row, code, took, says)
		if !strings.HasPrefix(row, "LIST") || code != 200 {
			continue
		}
		var list meta
		require.NoError(t, json.Unmarshal([]byte(says), &list))
		want := values["VERSION"]
		if strings.Contains(r.query, "TOKEN") {
			want = page.Metadata.ResourceVersion
		}
		got, _ := strconv.Atoi(list.Metadata.ResourceVersion)
		least, _ := strconv.Atoi(want)
		assert.True(t, got == least || !r.exact && got > least, "%s: version %d, want %d", row, got, least)
	}
	w.script(t, "server stop", "etcd slow 20s", "server start")
	code, took, says := w.ask(t, "GET", path+"/c?resourceVersion=0", "")
	assert.True(t, code == 200 && took < time.Second && strings.Contains(says, `"c"`),
		"while the cache is not ready: %d after %v: %s", code, took, says)
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAServerThatIsStartedAgainIsReadyWhenEtcdHasAnswered(t *testing.T) {
	Run(t, 1<<16, func(t *testing.T, w *Fixture) {
		first := w.Pipeline.Server
		for _, line := range []string{"server stop", "etcd slow 1s", "server start"} {
			require.NoError(t, w.Do(t.Context(), strings.Fields(line)...))
		}
		assert.True(t, w.Pipeline.Server != first && w.Pipeline.Server.Ready() != nil,
			"it is ready before etcd has answered")
		began := time.Now()
		err := w.Pipeline.Server.WaitReady(context.WithoutCancel(t.Context()))
		assert.True(t, err == nil && time.Since(began) >= time.Second, "ready after %v: %v", time.Since(began), err)
	})
}
