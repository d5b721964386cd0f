// Package reply writes the answers of every room of the page: JSON, HTML, or an error in the form that kubectl and the
// page both understand.
package reply

import (
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strconv"

	"github.com/a-h/templ"

	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/kube/negotiation"
	"listwatch/internal/observe/probe"
)

// MaxBody is the maximum number of bytes in the body of a request to the page's own commands.
const MaxBody = 16 << 10

// Refuse returns an error with an HTTP status.
var Refuse = negotiation.Refusal

// Error answers with an error that has a status code and a message.
func Error(w http.ResponseWriter, r *http.Request, code int, message string) {
	Wrong(w, r, Refuse(code, "%s", message))
}

// Wrong answers with an error and its status, as [handlers.WriteError] does.
func Wrong(w http.ResponseWriter, r *http.Request, err error) { handlers.WriteError(w, r, err) }

// With is a handler that answers with its result: an error with its status, a component as HTML, or a value as JSON,
// with status 200 unless it is [Coded]. A result that is an http.Handler answers by itself.
type With func(*http.Request) (any, error)

// ServeHTTP implements [http.Handler].
func (a With) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, MaxBody)
	value, err := a(r)
	if err != nil {
		Wrong(w, r, err)
		return
	}
	switch a := value.(type) {
	case Coded:
		writeJSON(w, a.Code, a.Value)
	case templ.Component:
		Page(w, r, a)
	case http.Handler:
		a.ServeHTTP(w, r)
	default:
		writeJSON(w, http.StatusOK, value)
	}
}

// Look returns a handler that answers with the result of look.
func Look[T any](look func() T) With {
	return func(*http.Request) (any, error) { return look(), nil }
}

// Body returns a handler that answers with the result of f for the body's JSON value, which [ReadJSON] reads.
func Body[T any](f func(*http.Request, *T) (any, error)) With {
	return func(r *http.Request) (any, error) {
		body := new(T)
		if err := ReadJSON(r, body); err != nil {
			return nil, err
		}
		return f(r, body)
	}
}

// Coded is a value with a status other than 200.
type Coded struct {
	Code  int
	Value any
}

// ReadJSON reads the single JSON value of a body, which [With] bounds, into target. A body may have no type:
// `kubectl create --raw` sends none. The error has a status of 4xx.
func ReadJSON(r *http.Request, target any) error {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if named := r.Header.Get("Content-Type") != ""; named && (err != nil || mediaType != "application/json") {
		return Refuse(http.StatusUnsupportedMediaType, "Content-Type: want application/json")
	}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	err = decoder.Decode(target)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return Refuse(http.StatusRequestEntityTooLarge, "body: more than %d bytes", MaxBody)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return Refuse(http.StatusRequestTimeout, "body: it did not come in time")
	}
	if err != nil {
		return Refuse(http.StatusBadRequest, "body: %v", err)
	}
	if decoder.More() {
		return Refuse(http.StatusBadRequest, "body: more than one value")
	}
	return nil
}

// Page answers with page as HTML that no cache may store.
func Page(w http.ResponseWriter, r *http.Request, page templ.Component) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_ = page.Render(r.Context(), w) // fails only if the client has disconnected
}

// writeJSON answers with value as JSON, or without a body if code is 204.
func writeJSON(w http.ResponseWriter, code int, value any) {
	if code == http.StatusNoContent {
		w.WriteHeader(code)
		return
	}
	body, err := json.Marshal(value)
	if err != nil {
		http.Error(w, "answer is not JSON: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write(body) // fails only if the client has disconnected
}

// About returns 410 for a request that names the log of another run, whose sequence numbers mean nothing here.
func About(log *probe.Log, r *http.Request) error {
	if id := r.URL.Query().Get("log"); id != "" && id != log.ID() {
		return Refuse(http.StatusGone, "that is the log of another run of the program")
	}
	return nil
}

// Number parses the number called name in a query. Without one, it returns the argument otherwise. The error is 400.
func Number(values url.Values, name string, otherwise uint64) (uint64, error) {
	text := values.Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, Refuse(http.StatusBadRequest, "%s: want a number, got %.40q", name, text)
	}
	return n, nil
}

// Foreign reports whether a page of another origin sent a request, which the guard would refuse if it were a write.
// Such a page can send a read, although it does not see the answer. The read is answered, but has no effects.
func Foreign(r *http.Request) bool {
	write := *r
	write.Method = http.MethodPost
	return http.NewCrossOriginProtection().Check(&write) != nil
}
