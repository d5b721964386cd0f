package book

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/check/apitest"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/server/apiserver"
	"listwatch/internal/server/mvcc"
)

// mostWords is the maximum number of words in a concept's title and text. Its links lead to the details.
const mostWords = 60

// TestAConceptSaysLittleAndShowsAll limits the words of each concept, requires two links, and checks that its exchange
// is the server's whole response; -update writes the exchange.
func TestAConceptSaysLittleAndShowsAll(t *testing.T) {
	all := Concepts()
	assert.True(t, len(all) >= 15, "%d concepts", len(all))
	for _, c := range all {
		t.Run(c.Name, func(t *testing.T) {
			assert.True(t, len(strings.Fields(c.Title+" "+c.Says)) <= mostWords, "it says more than %d words",
				mostWords)
			assert.True(t, len(c.Sections) >= 2, "sections: %q", c.Sections)
			want, _, _ := strings.Cut(c.Exchange, "\n")
			got := want + "\n\n" + played(t, c.Before, want)
			if *update {
				file := "concepts/" + c.Name + ".txt"
				text := string(require.Value(os.ReadFile(file))(t))
				head, _, _ := strings.Cut(text, "-- exchange --\n")
				require.NoError(t, os.WriteFile(file, []byte(head+"-- exchange --\n"+got), 0o644))
				return
			}
			assert.NoDiff(t, c.Exchange, got, "exchange: run go test ./internal/text/book -run Concept -update")
		})
	}
}

// uid matches the only part of a response's body that differs in each run.
var uid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// played sends a server in a bubble the requests in before, then last. It returns last's response, with fixed UIDs.
func played(t *testing.T, before []string, last string) (answer string) {
	bubble.Test(t, func(t *testing.T) {
		clk := clock.RealClock{} // the bubble's clock
		server := require.Value(pipeline.NewServer(pipeline.ServerConfig{Client: mvcc.New(clk),
			Handler: apiserver.Handler(nil), Clock: clk, UseWatchList: true, RingCapacity: 4}))(t)
		stop := bubble.Go(t, "server", func(ctx context.Context) { server.Run(ctx) })
		defer stop()
		time.Sleep(time.Second)
		synctest.Wait()
		for _, request := range before {
			if later, ok := strings.CutPrefix(request, "later "); ok { // sent during the last response
				time.AfterFunc(2*time.Second, func() { answered(t, server.Handler(), later) })
				continue
			}
			w := answered(t, server.Handler(), request)
			require.True(t, w.Code < 300, "%s: %d %s", request, w.Code, w.Body)
		}
		time.Sleep(time.Second)
		w := answered(t, server.Handler(), last)
		var head strings.Builder
		_ = w.Result().Header.WriteSubset(&head, map[string]bool{"Audit-Id": true, "Date": true})
		answer = fmt.Sprintf("HTTP/1.1 %d %s\n%s\n%s", w.Code, http.StatusText(w.Code),
			strings.ReplaceAll(head.String(), "\r", ""), strings.TrimSpace(w.Body.String())+"\n")
		answer = uid.ReplaceAllString(answer, "0a1b2c3d-0a1b-4a1b-8a1b-0a1b2c3d4e5f")
	})
	return answer
}

// answered sends the request "VERB /path {body}", and returns the complete response.
func answered(t *testing.T, server http.Handler, request string) *httptest.ResponseRecorder {
	verb, rest, _ := strings.Cut(request, " ")
	target, body, _ := strings.Cut(rest, " ")
	contentType := "application/json"
	if verb == http.MethodPatch {
		contentType = "application/merge-patch+json"
	}
	return (&apitest.API{T: t, Handler: server}).Do(verb, target, body, "Content-Type", contentType)
}
