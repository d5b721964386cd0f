package lens

import (
	"net/http"
	"path"

	handlers "listwatch/chapters/08-handlers"
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
	if acts[ask.Subresource] || acts[clean.Subresource] || ask.plural() == "proxy" {
		return http.StatusForbidden, "the lens does not let " + ask.Subresource + " through, which can change things " +
			"although it is a GET" + how
	}
	if len(r.Header["Upgrade"]) > 0 { // a server ignores what it does not know: ?watch=true makes a console no watch
		return http.StatusForbidden, "the lens does not let this request become another protocol, which is a stream " +
			"in both directions" + how
	}
	return 0, ""
}

// writeStatus answers in the form that kubectl and client-go print.
func writeStatus(w http.ResponseWriter, r *http.Request, code int, message string) {
	if code == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", "GET, HEAD, OPTIONS")
	}
	handlers.WriteError(w, r, negotiation.Refusal(code, "%s", message))
}
