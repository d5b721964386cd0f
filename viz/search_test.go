//go:build !race

package viz

import (
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/play/scenario"
	"listwatch/viz/book"
)

// TestWhatPeopleLookForIsAmongTheFirstThree asks the search of the pages for error messages, metrics, symbols of today
// and of older texts, and questions in plain words.
func TestWhatPeopleLookForIsAmongTheFirstThree(t *testing.T) {
	answer := httptest.NewRecorder()
	book.New(scenario.All).ServeHTTP(answer, httptest.NewRequest("GET", "/book/index.json", nil))
	e := newEngine(t, map[string]string{"rank": "book/rank.js"})
	run[bool](t, e, `var index = new page.rank.Index(JSON.parse(`+quote(t, answer.Body.Bytes())+`)); true`)
	var ours strings.Builder // the words of the search's code
	for _, file := range []string{"rank.js", "search.js", "index.go", "../../internal/text/book/places.go"} {
		ours.Write(require.Value(os.ReadFile("book/" + file))(t))
	}
	asked := 0
	for line := range strings.Lines(string(require.Value(os.ReadFile("book/testdata/queries.txt"))(t))) {
		query, want, ok := strings.Cut(strings.TrimSpace(line), " | ")
		if !ok {
			continue
		}
		asked++
		found := run[[]string](t, e, `index.search(`+quote(t, []byte(query))+`, 3).map(([at]) => at)`)
		hit := false
		for _, prefix := range strings.Split(want, "|") {
			for _, at := range found {
				hit = hit || strings.HasPrefix(at, prefix)
			}
		}
		assert.True(t, hit, "%s: found %q, want %s", query, found, want)
		assert.False(t, strings.Contains(ours.String(), query), "the search itself knows %q", query)
		if testing.Verbose() {
			t.Logf("%s: %q", query, found)
		}
	}
	assert.True(t, asked >= 25, "%d queries", asked)
}
