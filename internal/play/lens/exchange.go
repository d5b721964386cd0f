package lens

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/kube/negotiation"
	"listwatch/internal/kube/redact"
	"listwatch/internal/observe/probe"
)

// period is the time between two checks of whether clients read. A client that reads nothing for a period is stuck.
const period = time.Second

// The reasons for the end of an exchange.
const (
	clientLeft  = "the client went away"
	serverEnded = "the server ended it"
	broken      = "the connection to the server broke"
	weEnded     = "the lens ended"
)

// ErrEnds is the cause with which the program cancels the contexts of requests when it stops the lens.
var ErrEnds = errors.New(weEnded)

// exchange is one request and its response. The goroutine of the request owns it, except for the [request], which other
// goroutines read, too.
//
// The proxy reads the response's body from the exchange, and writes each piece to the client before the next Read. The
// exchange parses the pieces of a watch only in that next Read, so it delays no event.
type exchange struct {
	lens          *Lens
	*request      // guarded by the lens, except for Ask, which never changes; only this goroutine sets status
	io.ReadCloser // the body from the server; nil before the response

	protobuf bool   // the response is protobuf, which the lens does not parse
	encoding string // Content-Encoding of the response
	bytes    int64  // bytes read so far
	why      string // the reason for the end
	events   Events
	piece    []byte // a copy of the last piece of a watch
	head     []byte // the beginning of the body of a list or a failed watch
}

// rewrite sets the server's URL and Host: kubectl proxy refuses other Hosts. It also makes the response parseable: it
// requests watches without compression, and no protobuf from clients that accept another type.
func (x *exchange) rewrite(r *httputil.ProxyRequest) {
	r.SetURL(x.lens.config.Servers[0])
	if x.Watch {
		r.Out.Header.Set("Accept-Encoding", "identity")
	}
	accepts := strings.Split(r.Out.Header.Get("Accept"), ",")
	accepts = slices.DeleteFunc(accepts, func(each string) bool { return strings.Contains(each, "protobuf") })
	if len(accepts) > 0 {
		r.Out.Header.Set("Accept", strings.Join(accepts, ","))
	}
}

// pass handles a response's header: it saves the status, drops harmful headers, and wraps the body.
func (x *exchange) pass(response *http.Response) error {
	x.answered(response.StatusCode, response.Header)
	guardBrowsers(response.Header)
	if response.StatusCode != http.StatusSwitchingProtocols { // the body of a 101 is the connection
		x.ReadCloser, response.Body = response.Body, x
	}
	return nil
}

// unreachable answers 502 if there is no response. If that is because the client left, finish replaces the reason.
func (x *exchange) unreachable(w http.ResponseWriter, r *http.Request, err error) {
	x.why = "the server cannot be reached"
	x.answered(http.StatusBadGateway, nil)
	handlers.WriteError(w, r, negotiation.Refusal(http.StatusBadGateway,
		"the lens cannot reach %s: %v; is kubectl proxy still running?", x.lens.transport.Server().Host, err))
}

// answered saves a response's status, time and encoding, and whether it is a 410 to a watch. A watch that the response
// opens becomes a stream: answered writes its records to the log.
func (x *exchange) answered(status int, header http.Header) {
	x.protobuf, x.encoding = strings.Contains(header.Get("Content-Type"), "protobuf"), header.Get("Content-Encoding")
	l, r := x.lens, x.request
	l.mu.Lock()
	defer l.mu.Unlock()
	r.status = status
	r.gone = status == http.StatusGone && r.Watch
	if r.Watch && r.reads() && (status == http.StatusOK || status == http.StatusSwitchingProtocols) {
		r.streams = true
		l.showLocked(r)
	}
}

// finish parses the last piece, chooses the reason for the end, and reports the end to the lens.
func (x *exchange) finish(ctx context.Context) {
	switch {
	case errors.Is(context.Cause(ctx), ErrEnds):
		x.why = weEnded
	case ctx.Err() != nil:
		x.why = clientLeft
	}
	x.look()
	version := ""
	if x.status == http.StatusOK {
		version = ReadVersion(x.head, x.encoding)
	}
	x.lens.end(x.request, x.why, version, x.bytes)
}

func (x *exchange) Read(p []byte) (int, error) {
	x.writing.Store(0)
	x.look()
	n, err := x.ReadCloser.Read(p)
	if n > 0 {
		x.bytes += int64(n)
		x.writing.Store(x.lens.config.Clock.Now().UnixNano())
		x.keep(p[:n])
	}
	switch {
	case errors.Is(err, io.EOF):
		x.why = serverEnded
	case err != nil:
		x.why = broken
	}
	return n, err
}

// keep saves what the lens will parse: the piece of a successful watch, or the beginning of any other list or watch.
func (x *exchange) keep(p []byte) {
	switch {
	case !x.reads() || x.protobuf:
	case x.Watch && x.status == http.StatusOK:
		x.piece = append(x.piece[:0], p...)
	case len(x.head) < HeadSize:
		x.head = append(x.head, p[:min(len(p), HeadSize-len(x.head))]...)
	}
}

// look parses the saved piece, after the proxy has written it to the client.
func (x *exchange) look() {
	for _, event := range x.events.Read(x.piece) {
		x.lens.frame(x.request, event)
	}
	x.piece = x.piece[:0]
}

// Ask is a parsed request without secrets: its only header is the user agent. Texts have up to 200 bytes, Resource 400.
type Ask struct {
	Client                       string // the user agent
	Method                       string
	Resource                     string // "pods", "deployments.apps"; "" if the path is outside the API
	Namespace, Name, Subresource string
	Labels, Fields               string
	Version                      string
	Continue, Watch              bool
	Bookmarks, InitialEvents     bool
}

const (
	maxText   = 200         // maximum number of bytes of a client's text in an Ask
	maxRedact = 4 * maxText // maximum number of bytes in which redact searches for secrets
)

// bound returns a copy of at most the first maxText bytes of a text, without secrets.
func bound(text string) string {
	text = redact.Text(text[:min(len(text), maxRedact)])
	return strings.ToValidUTF8(strings.Clone(text[:min(len(text), maxText)]), "")
}

// newAsk parses a request as a kube-apiserver does.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/request/requestinfo.go: (*RequestInfoFactory).NewRequestInfo
func newAsk(r *http.Request) Ask {
	query, options := r.URL.Query(), metav1.ListOptions{}
	_ = metav1.Convert_url_Values_To_v1_ListOptions(&query, &options, nil) // the server will refuse a malformed query
	ask := askPath(r.URL.Path)
	ask.Client, ask.Method = bound(r.UserAgent()), bound(r.Method)
	ask.Labels, ask.Fields = bound(options.LabelSelector), bound(options.FieldSelector)
	ask.Version, ask.Continue = bound(options.ResourceVersion), options.Continue != ""
	ask.Watch = ask.Watch || ask.Name == "" && options.Watch
	ask.Bookmarks, ask.InitialEvents = options.AllowWatchBookmarks, ptr.Deref(options.SendInitialEvents, false)
	return ask
}

// askPath parses the paths /api/VERSION/… and /apis/GROUP/VERSION/…. Any other path yields an empty Ask.
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
	if parts[0] == "watch" { // a deprecated form of the path of a watch
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

// reads reports whether the request is a list or a watch.
func (a *Ask) reads() bool {
	return a.Method == http.MethodGet && a.Resource != "" && (a.Watch || a.Name == "")
}

// state reports whether the request reads the whole state: by the first page of a list, or by a watch-list.
func (a *Ask) state() bool { return a.reads() && !a.Continue && (!a.Watch || a.InitialEvents) }

// resumes reports whether the request is a watch other than a watch-list.
func (a *Ask) resumes() bool { return a.Watch && !a.InitialEvents }

// trail returns the key of a [trail]. All requests of one informer have the same key.
func (a *Ask) trail() string {
	return strings.Join([]string{a.Client, a.Resource, a.Namespace, a.Labels, a.Fields}, "\x00")
}

// plural returns the resource without its group, as records of our client half name it.
func (a *Ask) plural() string {
	name, _, _ := strings.Cut(a.Resource, ".")
	return name
}

// what returns the resource, namespace and selectors in words.
func (a *Ask) what() string {
	text := a.Resource
	if a.Namespace != "" {
		text += " in " + a.Namespace
	}
	if selector := strings.Trim(a.Labels+","+a.Fields, ","); selector != "" {
		text += " with " + selector
	}
	return text
}

// short returns a client's name for sentences: the one in its user agent, without the version.
func short(client string) string {
	return cmp.Or(probe.AgentOf(client), "a client without a user agent")
}
