package viz

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"listwatch/internal/kube/negotiation"
)

// reasons are what a kube-apiserver would say for the statuses we answer ourselves.
var reasons = map[int]metav1.StatusReason{
	http.StatusBadRequest:            metav1.StatusReasonBadRequest,
	http.StatusForbidden:             metav1.StatusReasonForbidden,
	http.StatusNotFound:              metav1.StatusReasonNotFound,
	http.StatusMethodNotAllowed:      metav1.StatusReasonMethodNotAllowed,
	http.StatusGone:                  metav1.StatusReasonExpired,
	http.StatusRequestEntityTooLarge: metav1.StatusReasonRequestEntityTooLarge,
	http.StatusUnsupportedMediaType:  metav1.StatusReasonUnsupportedMediaType,
	http.StatusServiceUnavailable:    metav1.StatusReasonServiceUnavailable,
	http.StatusInternalServerError:   metav1.StatusReasonInternalError,
}

// writeStatus answers with an error in the form every client of the port knows, kubectl and page alike.
func writeStatus(w http.ResponseWriter, code int, message string) {
	writeError(w, refuse(code, "%s", message))
}

// refuse returns an error with the status a client gets for it.
func refuse(code int, format string, args ...any) error {
	return negotiation.NewStatusError(int32(code), reasons[code], fmt.Sprintf(format, args...))
}

// answering is the handler that answers what f returns: an error, under the status it carries, or a value as JSON,
// under 200 if it is not [answered] under another one. A handler answers by itself.
func answering(f func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		value, err := f(r)
		if err != nil {
			writeError(w, err)
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

// writeError answers with an error, under the status it carries, or 500.
func writeError(w http.ResponseWriter, err error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		writeStatus(w, http.StatusInternalServerError, err.Error())
		return
	}
	written := status.Status()
	written.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	writeJSON(w, int(written.Code), written)
}

func serveMethodNotAllowed(w http.ResponseWriter, r *http.Request) {
	writeStatus(w, http.StatusMethodNotAllowed, r.Method+" is not supported here")
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
