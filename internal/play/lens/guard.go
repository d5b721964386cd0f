package lens

import (
	"encoding/json"
	"net/http"
	"path"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"listwatch/internal/kube/negotiation"
)

// acts are subresources that do something although they are asked for with GET.
var acts = map[string]bool{"exec": true, "attach": true, "portforward": true, "proxy": true}

// refuse returns why a request may not pass: a status code and a sentence; 0 if it may.
func refuse(r *http.Request) (code int, why string) {
	const how = "; start viz with -server-writes to let such requests through"
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
	default:
		return http.StatusMethodNotAllowed, "the lens only lets GET and HEAD through: it forwards to a server that " +
			"is not its own" + how
	}
	ask, clean := newAsk(r), askPath(path.Clean(r.URL.Path))
	resource, _, _ := strings.Cut(ask.Resource, ".")
	if acts[ask.Subresource] || acts[clean.Subresource] || resource == "proxy" {
		return http.StatusForbidden, "the lens does not let " + ask.Subresource + " through, which can change things " +
			"although it is a GET" + how
	}
	if len(r.Header["Upgrade"]) > 0 { // a server ignores what it does not know: ?watch=true makes a console no watch
		return http.StatusForbidden, "the lens does not let this request become another protocol, which is a stream " +
			"in both directions" + how
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
	status := negotiation.NewStatusError(int32(code), reasons[code], message).ErrStatus
	status.Kind, status.APIVersion = "Status", "v1"
	if code == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", "GET, HEAD, OPTIONS")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(status) // fails only if the client has disconnected
}
