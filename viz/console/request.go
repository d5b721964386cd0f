package console

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// methods are those that the API server has a meaning for.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
	http.MethodDelete, http.MethodOptions}

// Read reads a request: the method and the path, header lines, an empty line, and a body. Its errors are for the
// viewer. What belongs to the connection is left out: the length is the body's, and the console names itself.
func Read(text string) (*http.Request, error) {
	text = strings.TrimLeft(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	head, body, _ := strings.Cut(text, "\n\n")
	line, header, _ := strings.Cut(strings.TrimRight(head, "\n"), "\n")
	words := strings.Fields(line)
	if len(words) < 2 || len(words) > 3 || len(words) == 3 && !strings.HasPrefix(words[2], "HTTP/") {
		return nil, fmt.Errorf("first line %.80q: want a method and a path, as in GET /api/v1/pods", line)
	}
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(
		fmt.Sprintf("%s %s HTTP/1.1\n%s\n\n", words[0], words[1], header))))
	if err != nil {
		return nil, fmt.Errorf("the request: %w", err)
	}
	switch path := r.URL.Path; {
	case !slices.Contains(methods, r.Method):
		return nil, fmt.Errorf("method %.20q: want one of %s", r.Method, strings.Join(methods, ", "))
	case !strings.HasPrefix(words[1], "/"):
		return nil, fmt.Errorf("path %.80q: it begins with /", words[1])
	case strings.HasPrefix(path, "/viz/"), strings.HasPrefix(path, "/book/"):
		return nil, fmt.Errorf("path %.80q: that is the page's own; the console asks the API server", path)
	}
	if r.Header.Get("Upgrade") != "" {
		return nil, errors.New("header Upgrade: the console reads answers, and has no second direction")
	}
	for _, name := range []string{"Connection", "Content-Length", "Transfer-Encoding", "Expect", "Trailer"} {
		r.Header.Del(name)
	}
	r.RequestURI, r.TransferEncoding, r.Trailer, r.Close = "", nil, nil, true
	r.Body, r.ContentLength = http.NoBody, int64(len(body))
	if body != "" {
		r.Body = io.NopCloser(strings.NewReader(body))
	}
	// Otherwise net/http asks for gzip by itself, and unpacks it: the page would not show what has come.
	r.Header.Set("Accept-Encoding", cmp.Or(r.Header.Get("Accept-Encoding"), "identity"))
	return r, nil
}
