package lens

import (
	"encoding/json"
	"net/http"
	"path"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// acts are subresources that do something although they are asked for with GET.
var acts = map[string]bool{"exec": true, "attach": true, "portforward": true, "proxy": true}

// refuse returns why a guest may not send a request: a status code and a sentence; 0 if it may.
func refuse(r *http.Request) (code int, why string) {
	const how = "; start viz with -server-writes to let such requests through"
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
	default:
		return http.StatusMethodNotAllowed, "the lens only lets GET and HEAD through: it forwards to a server that is not its own" + how
	}
	ask, clean := newAsk(r), askPath(path.Clean(r.URL.Path))
	if acts[ask.Subresource] || acts[clean.Subresource] || ask.Resource == "proxy" || strings.HasPrefix(ask.Resource, "proxy.") {
		return http.StatusForbidden, "the lens does not let " + ask.Subresource + " through, which can change things although it is a GET" + how
	}
	if r.Header.Get("Upgrade") != "" && !ask.Watch {
		return http.StatusForbidden, "the lens lets only watches become websockets" + how
	}
	return 0, ""
}

var reasons = map[int]metav1.StatusReason{
	http.StatusMethodNotAllowed: metav1.StatusReasonMethodNotAllowed,
	http.StatusForbidden:        metav1.StatusReasonForbidden,
	http.StatusBadGateway:       metav1.StatusReasonServiceUnavailable,
}

// writeStatus answers in the form that kubectl and client-go print.
func writeStatus(w http.ResponseWriter, code int, message string) {
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Message: message, Reason: reasons[code], Code: int32(code),
	})
	if err != nil {
		panic("lens: a Status is not JSON: " + err.Error())
	}
	if code == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", "GET, HEAD, OPTIONS")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(body) // it fails only if the client has disconnected
}
