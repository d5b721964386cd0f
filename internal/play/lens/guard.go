package lens

import (
	"encoding/json"
	"net/http"
	"path"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"listwatch/internal/kube/negotiation"
)

// acts are subresources that do something although they are asked for with GET.
var acts = map[string]bool{"exec": true, "attach": true, "portforward": true, "proxy": true}

// collection is the path of a list or watch, with nothing escaped: the group and version, and the plural name.
var collection = regexp.MustCompile(
	`^(/api/[a-z0-9]+|/apis/[a-z0-9.-]+/[a-z0-9]+)(?:/namespaces/[a-z0-9.-]+)?/([a-z0-9.-]+)$`)

// refuse returns why a request may not pass: a status code and a sentence; 0 if it may. It may ask the server for a
// discovery.
func (l *Lens) refuse(r *http.Request) (code int, why string) {
	const how = "; start viz with -server-writes to let such requests through"
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
	default:
		return http.StatusMethodNotAllowed, "the lens only lets GET and HEAD through: it forwards to a server that " +
			"is not its own" + how
	}
	ask, clean := newAsk(r), askPath(path.Clean(r.URL.Path))
	if acts[ask.Subresource] || acts[clean.Subresource] || ask.Resource == "proxy" || strings.HasPrefix(ask.Resource,
		"proxy.") {
		return http.StatusForbidden, "the lens does not let " + ask.Subresource + " through, which can change things " +
			"although it is a GET" + how
	}
	if len(r.Header["Upgrade"]) > 0 {
		if why := l.refuseUpgrade(r, &ask); why != "" {
			return http.StatusForbidden, "the lens does not let this request become another protocol: " + why + how
		}
	}
	return 0, ""
}

// refuseUpgrade returns why a request may not turn its connection into a stream in both directions; "" if it may. It
// may if it is known for a watch: a server ignores parameters that it does not know, so that ?watch=true says nothing
// about a console.
func (l *Lens) refuseUpgrade(r *http.Request, ask *Ask) (why string) {
	if protocol := r.Header["Upgrade"]; len(protocol) != 1 || !strings.EqualFold(protocol[0], "websocket") {
		return "only a websocket passes"
	}
	found := collection.FindStringSubmatch(r.URL.EscapedPath())
	if r.Method != http.MethodGet || !ask.Watch || found == nil || path.Clean(r.URL.Path) != r.URL.Path {
		return "only a watch of a collection passes"
	}
	watches, err := l.discovery.Watches(r.Context(), found[1], found[2])
	if err != nil {
		return err.Error()
	}
	if !watches {
		return "the server's discovery does not say that " + found[2] + " can be watched"
	}
	return ""
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
