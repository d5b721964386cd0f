package guest

import (
	"fmt"
	"net/http"
	"sync/atomic"
)

// trouble is a transport that asks for metadata only, remembers what is wrong with the requests for one resource, and says what to do.
type trouble struct {
	// Set by Guest.add, never changed.
	next                http.RoundTripper
	resource, namespace string

	text atomic.Value // string
}

// RoundTrip implements [http.RoundTripper].
func (t *trouble) RoundTrip(r *http.Request) (*http.Response, error) {
	asking := r.Clone(r.Context()) // the caller's own must stay as it is
	asking.Header.Set("Accept", listOfMetadata)
	if r.URL.Query().Get("watch") == "true" {
		asking.Header.Set("Accept", metadataOnly)
	}
	response, err := t.next.RoundTrip(asking)
	switch {
	case r.Context().Err() != nil: // we have gone ourselves
	case err != nil:
		t.say(fmt.Sprintf("%s cannot be reached (%v): is kubectl proxy still running? The reflector tries again by itself", r.URL.Host, Reason(err)))
	default:
		t.say(t.advice(response.StatusCode))
	}
	return response, err
}

// advice says what a status means to a guest; "" if it is nothing to worry about: 410 and 429 heal by themselves.
func (t *trouble) advice(status int) string {
	switch where := t.where(); status {
	case http.StatusUnauthorized:
		return "401: the server does not know who we are. Log in again, and restart kubectl proxy"
	case http.StatusForbidden:
		return "403: you may not list and watch " + t.resource + where + ". Choose a namespace in which you may, or ask for the right to (kubectl auth can-i watch " + t.resource + ")"
	case http.StatusNotFound:
		return "404: the server does not have " + t.resource + where + " any more. Has its CustomResourceDefinition been deleted?"
	case http.StatusNotAcceptable:
		return "406: the server cannot send metadata of " + t.resource + " alone"
	case http.StatusMethodNotAllowed:
		return "405: " + t.resource + " cannot be watched"
	case http.StatusFound, http.StatusMovedPermanently, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return "the server leads elsewhere, and a guest does not follow: -server must name the API itself"
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusInternalServerError:
		return fmt.Sprintf("%d: the server has a problem of its own. The reflector tries again by itself", status)
	}
	return ""
}

func (t *trouble) where() string {
	if t.namespace == "" {
		return " in all namespaces"
	}
	return " in " + t.namespace
}

func (t *trouble) say(text string) { t.text.Store(text) }

func (t *trouble) said() string {
	text, _ := t.text.Load().(string)
	return text
}
