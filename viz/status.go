package viz

import (
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"os"

	"github.com/a-h/templ"

	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/kube/negotiation"
)

// maxBody is the largest request body the page's own commands accept.
const maxBody = 16 << 10

// refuse returns an error with the status a client gets for it.
var refuse = negotiation.Refusal

// writeStatus answers with an error in the form every client of the port knows, kubectl and page alike.
func writeStatus(w http.ResponseWriter, r *http.Request, code int, message string) {
	handlers.WriteError(w, r, refuse(code, "%s", message))
}

// answer is the handler that answers what it returns: an error, under the status it carries, a component as HTML, or a
// value as JSON, under 200 if it is not [answered] under another one. A handler answers by itself.
type answer func(*http.Request) (any, error)

// ServeHTTP implements [http.Handler].
func (a answer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	value, err := a(r)
	if err != nil {
		handlers.WriteError(w, r, err)
		return
	}
	switch a := value.(type) {
	case answered:
		writeJSON(w, a.code, a.value)
	case templ.Component:
		writePage(w, r, a)
	case http.Handler:
		a.ServeHTTP(w, r)
	default:
		writeJSON(w, http.StatusOK, value)
	}
}

// shown answers with what look returns.
func shown[T any](look func() T) answer {
	return func(*http.Request) (any, error) { return look(), nil }
}

// withBody answers with what f makes of the one JSON value of the body.
func withBody[T any](f func(*http.Request, *T) (any, error)) answer {
	return func(r *http.Request) (any, error) {
		body := new(T)
		if err := readJSON(r, body); err != nil {
			return nil, err
		}
		return f(r, body)
	}
}

// answered is a value under another status than 200.
type answered struct {
	code  int
	value any
}

func serveMethodNotAllowed(w http.ResponseWriter, r *http.Request) {
	writeStatus(w, r, http.StatusMethodNotAllowed, r.Method+" is not supported here")
}

// readJSON reads the one JSON value of a body, which [answer] bounds, into target. A body without a type is JSON,
// too: `kubectl create --raw` names none, and a foreign web page does not come as far as this.
func readJSON(r *http.Request, target any) error {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if named := r.Header.Get("Content-Type") != ""; named && (err != nil || mediaType != "application/json") {
		return refuse(http.StatusUnsupportedMediaType, "Content-Type: want application/json")
	}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	err = decoder.Decode(target)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return refuse(http.StatusRequestEntityTooLarge, "body: more than %d bytes", maxBody)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return refuse(http.StatusRequestTimeout, "body: it did not come in time")
	}
	if err != nil {
		return refuse(http.StatusBadRequest, "body: %v", err)
	}
	if decoder.More() {
		return refuse(http.StatusBadRequest, "body: more than one value")
	}
	return nil
}

// writePage answers with HTML.
func writePage(w http.ResponseWriter, r *http.Request, page templ.Component) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_ = page.Render(r.Context(), w) // it fails only if the client has disconnected
}

// writeJSON answers with value as JSON.
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
	// The peer may have gone; there is no one else to tell.
	_, _ = w.Write(body)
}
