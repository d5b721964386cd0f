package viz

import (
	"encoding/json"
	"net/http"

	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/kube/negotiation"
)

// refuse returns an error with the status a client gets for it.
var refuse = negotiation.Refusal

// writeStatus answers with an error in the form every client of the port knows, kubectl and page alike.
func writeStatus(w http.ResponseWriter, r *http.Request, code int, message string) {
	handlers.WriteError(w, r, refuse(code, "%s", message))
}

// answering is the handler that answers what f returns: an error, under the status it carries, or a value as JSON,
// under 200 if it is not [answered] under another one. A handler answers by itself.
func answering(f func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		value, err := f(r)
		if err != nil {
			handlers.WriteError(w, r, err)
			return
		}
		switch a := value.(type) {
		case answered:
			writeJSON(w, a.code, a.value)
		case http.Handler:
			a.ServeHTTP(w, r)
		default:
			writeJSON(w, http.StatusOK, value)
		}
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
