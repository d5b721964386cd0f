package lens

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"listwatch/internal/redact"
	"listwatch/internal/wiretap"
)

// What a record says.
const (
	Asked    What = iota // a request has come: Ask
	Answered             // the header of its answer: Status, RetryAfter
	Framed               // one frame of a watch: Event, Lag
	Stuck                // the client has not read its watch for as long as Waited says
	Ended                // Bytes, FirstByte, List, Cause
	Ticked               // a second has passed; of no request
)

// What is the kind of a [Record].
type What int

// Record is one thing seen through the lens. Which fields are set depends on What.
type Record struct {
	At      time.Time
	Request uint64 // its number, from 1
	What    What

	Ask        Ask
	Status     int
	RetryAfter time.Duration // of a 429; 0: it says nothing
	Event      wiretap.Event
	Lag        time.Duration // since the same version was first seen on any watch of the resource
	Waited     time.Duration
	Bytes      int64
	FirstByte  time.Duration // from Asked to the first byte of the body
	List       wiretap.ListHead
	Cause      string
	Lost       int64 // bytes that were forwarded and not read
}

// Ask is what a request asks for. It holds no header but the user agent, so there are no credentials in it.
type Ask struct {
	Client        string `json:"client"` // the user agent
	Method        string `json:"method"`
	Resource      string `json:"resource"` // "pods", "deployments.apps"; "" if the path is none of the API's
	Namespace     string `json:"namespace,omitempty"`
	Name          string `json:"name,omitempty"`
	Subresource   string `json:"subresource,omitempty"`
	Labels        string `json:"labels,omitempty"`
	Fields        string `json:"fields,omitempty"`
	Version       string `json:"version"`
	Match         string `json:"match,omitempty"`
	Limit         string `json:"limit,omitempty"`
	Continue      bool   `json:"continue,omitempty"`
	Watch         bool   `json:"watch,omitempty"`
	Bookmarks     bool   `json:"bookmarks,omitempty"`
	InitialEvents bool   `json:"initialEvents,omitempty"`
}

// maxText bounds what is kept of any text that a client sends.
const maxText = 200

func bound(text string) string {
	text = redact.Text(text)
	return strings.ToValidUTF8(text[:min(len(text), maxText)], "")
}

// newAsk reads a request.
func newAsk(r *http.Request) Ask {
	query := r.URL.Query()
	ask := askPath(r.URL.Path)
	ask.Client, ask.Method = bound(r.UserAgent()), r.Method
	ask.Labels, ask.Fields = bound(query.Get("labelSelector")), bound(query.Get("fieldSelector"))
	ask.Version, ask.Match = bound(query.Get("resourceVersion")), bound(query.Get("resourceVersionMatch"))
	ask.Limit, ask.Continue = bound(query.Get("limit")), query.Get("continue") != ""
	ask.Watch = ask.Watch || isTrue(query, "watch")
	ask.Bookmarks, ask.InitialEvents = isTrue(query, "allowWatchBookmarks"), isTrue(query, "sendInitialEvents")
	return ask
}

func isTrue(query url.Values, name string) bool {
	yes, err := strconv.ParseBool(query.Get(name))
	return yes && err == nil
}

// askPath takes /api/v1/… and /apis/GROUP/VERSION/… apart.
func askPath(path string) (ask Ask) {
	parts := slices.DeleteFunc(strings.Split(path, "/"), func(part string) bool { return part == "" })
	group := ""
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group, parts = "."+parts[1], parts[3:]
	default:
		return ask
	}
	if parts[0] == "watch" { // as it was asked before 1.11
		ask.Watch, parts = true, parts[1:]
	}
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		ask.Namespace, parts = bound(parts[1]), parts[2:]
	}
	for i, field := range []*string{&ask.Resource, &ask.Name, &ask.Subresource} {
		if i < len(parts) {
			*field = bound(parts[i])
		}
	}
	if ask.Resource != "" {
		ask.Resource += bound(group)
	}
	return ask
}

// reads reports whether it is a GET of a collection: a list or a watch.
func (a *Ask) reads() bool {
	return a.Method == http.MethodGet && a.Resource != "" && (a.Watch || a.Name == "")
}

// state reports whether it asks for the state there is: a list, or a watch-list.
func (a *Ask) state() bool { return a.reads() && (!a.Watch || a.InitialEvents) }

// writes reports whether it changes an object.
func (a *Ask) writes() bool {
	return a.Resource != "" && a.Name != "" && a.Method != http.MethodGet && a.Method != http.MethodHead && a.Method != http.MethodOptions
}

// history is what its requests have in common that belong together: the work of one informer.
func (a *Ask) history() string {
	return strings.Join([]string{a.Client, a.Resource, a.Namespace, a.Labels, a.Fields}, "\x00")
}
