package console

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

func TestARequestIsReadAsHTTPWritesIt(t *testing.T) {
	r, err := Read("\nPATCH /api/v1/pods/a?force=false HTTP/1.1\r\nAccept: application/json\nContent-Length: 7\n" +
		"Connection: close\n\n{\"a\":\n\n1}\n")
	require.NoError(t, err)
	body, _ := io.ReadAll(r.Body) // cannot fail: the body is a string
	got := []string{r.Method, r.URL.String(), r.Header.Get("Accept"), r.Header.Get("Content-Length"), string(body)}
	assert.NoDiff(t, []string{"PATCH", "/api/v1/pods/a?force=false", "application/json", "", "{\"a\":\n\n1}\n"}, got)
	assert.True(t, r.ContentLength == int64(len(body)), "its length: %d", r.ContentLength)
	for _, each := range readyMade() {
		for _, request := range each.requests {
			assert.NoError(t, assert.ErrorOf(Read(request)), "%s: %s", each.command, request)
		}
	}
	assert.True(t, len(readyMade()) >= 6, "%d commands", len(readyMade()))
}

func TestWhatIsNoRequestIsRefusedWithAReason(t *testing.T) {
	for text, reason := range map[string]string{
		"":                                    "want a method and a path",
		"hello":                               "want a method and a path",
		"GET /a b c":                          "want a method and a path",
		"get /api":                            "method \"get\"",
		"GET api":                             "invalid URI",
		"GET http://example.com/":             "begins with /",
		"GET /viz/knobs":                      "the page's own",
		"GET /%76iz/knobs":                    "the page's own",
		"GET /%zz":                            "invalid URL escape",
		"GET /api\nno header":                 "malformed MIME header",
		"GET /api\nContent-Length: x":         "Content-Length",
		"GET /api/v1/pods\nUpgrade: SPDY/3.1": "no second direction",
	} {
		_, err := Read(text)
		assert.True(t, err != nil && strings.Contains(err.Error(), reason), "%q: got %v, want %q", text, err, reason)
	}
}

// passed returns the pieces that the page receives for an answer.
func passed(t *testing.T, query, mediaType, body string) (all []said) {
	t.Helper()
	w := httptest.NewRecorder()
	response := &http.Response{
		Status: "200 OK", Header: http.Header{"Content-Type": {mediaType}}, Body: io.NopCloser(strings.NewReader(body)),
		Request: &http.Request{URL: &url.URL{RawQuery: query}, Header: http.Header{"User-Agent": {"me"}}},
	}
	Answer{response}.ServeHTTP(w, nil)
	for decoder := json.NewDecoder(w.Body); decoder.More(); {
		var each said
		require.NoError(t, decoder.Decode(&each))
		all = append(all, each)
	}
	require.True(t, len(all) > 1 && all[0].Agent == "me" && all[0].Status == "200 OK" && all[len(all)-1].End != "",
		"told %+v", all)
	return all[1 : len(all)-1]
}

func TestAnAnswerComesInFramesOrPieces(t *testing.T) {
	const one, two = `{"type":"ADDED"}` + "\n", `{"type":"DELETED"}` + "\n"
	frames := passed(t, "watch=true", "application/json", one+two)
	assert.NoDiff(t, []said{{Text: one, Size: len(one)}, {Text: two, Size: len(two)}}, frames)
	long := strings.Repeat("a", maxPiece+10) + "\n"
	frames = passed(t, "watch=1", "application/json", long)
	assert.True(t, len(frames) == 2 && frames[0].Size == maxPiece && frames[1].Size == 11, "in %d pieces", len(frames))

	packed := passed(t, "", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf", "k8s\x00")
	assert.True(t, len(packed) == 1 && strings.Contains(packed[0].Text, "6b 38 73"), "got %+v", packed)

	list := passed(t, "", "application/json", long)
	assert.True(t, len(list) == 2 && list[0].Size == maxPiece, "a list: %d pieces", len(list))
}
