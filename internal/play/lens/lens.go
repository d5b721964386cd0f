// Package lens forwards requests to another server, and describes what its clients do wrong. Each verdict is a function
// over a trail of requests, in one table.
//
// [Lens.Run] finds what only time shows; all else runs in the goroutines of requests.
//
// Differs: upstream has nothing of the kind; people read kubectl -v=8 or run mitmproxy.
package lens

import (
	"cmp"
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"

	"k8s.io/utils/clock"

	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/kube/negotiation"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
	"listwatch/internal/play/guest"
)

// Config describes a [Lens]. Servers and Clock are required.
type Config struct {
	Servers []*url.URL // one server's addresses
	Writes  bool       // forward requests that write
	Clock   clock.WithTicker
}

// Lens forwards requests to another server, remembers them, and judges them by [verdicts]. Its memory is bounded. It
// may be used from any goroutine.
type Lens struct {
	// Set by New, never changed.
	config    Config
	transport *guest.Transport

	mu       sync.Mutex // guards the fields below and their elements; taken before the log's
	log      *probe.Log // gets records of requests and watches; nil: none
	running  map[*request]bool
	trails   map[string]*trail
	objects  map[string]*object // the objects that clients write, by Ask.one
	said     map[string]*Finding
	named    map[string]bool // resources with a name in the log
	requests uint64
}

var _ http.Handler = (*Lens)(nil)

// New returns a lens. It starts nothing. Some verdicts need [Lens.Run].
func New(config Config) *Lens {
	return &Lens{
		config: config, transport: guest.NewTransport(config.Servers),
		running: map[*request]bool{}, trails: map[string]*trail{}, objects: map[string]*object{},
		said: map[string]*Finding{}, named: map[string]bool{},
	}
}

// ServeHTTP forwards one request, or refuses it. It returns when the answer has ended.
func (l *Lens) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := l.refuse(w.Header(), r); err != nil {
		handlers.WriteError(w, r, err)
		return
	}
	path, query := requestOf(r)
	x := &exchange{lens: l, request: l.begin(newAsk(r), path, query)}
	defer x.finish(r.Context())
	proxy := httputil.ReverseProxy{
		Rewrite:        x.rewrite,
		Transport:      l.transport,
		FlushInterval:  -1, // each frame at once
		ErrorLog:       log.New(io.Discard, "", 0),
		ModifyResponse: x.pass,
		ErrorHandler:   x.unreachable,
	}
	proxy.ServeHTTP(w, r)
}

// Run checks the open requests once a second, until ctx is done. It is called once.
func (l *Lens) Run(ctx context.Context) {
	defer l.transport.CloseIdleConnections()
	routine.Every(ctx, l.config.Clock, period, l.tick)
}

// passed are the headers of answers that API clients need. The lens drops the others, which a server sets for its own
// origin: here they would count for ours.
var passed = strings.Fields("Allow Audit-Id Cache-Control Connection Content-Encoding Content-Length Content-Type " +
	"Date Etag Last-Modified Location Retry-After Sec-Websocket-Accept Sec-Websocket-Protocol Upgrade Vary Warning " +
	"Www-Authenticate X-Kubernetes-Pf-Flowschema-Uid X-Kubernetes-Pf-Prioritylevel-Uid X-Stream-Protocol-Version")

// guardBrowsers drops and sets headers so that no answer can run in a browser under our origin, or change its policies.
func guardBrowsers(header http.Header) {
	for name := range header {
		if !slices.Contains(passed, name) {
			header.Del(name)
		}
	}
	header.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
}

// Report is a summary of the lens's findings.
type Report struct {
	Server   string    `json:"server"`
	Writes   bool      `json:"writes"`
	Requests uint64    `json:"requests"`
	Clients  int       `json:"clients"`
	Findings []Finding `json:"findings"` // the newest first
}

// Report returns the findings so far. The caller owns them.
func (l *Lens) Report() Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	report := Report{Server: l.transport.Server().String(), Writes: l.config.Writes, Requests: l.requests,
		Findings: []Finding{}}
	clients := map[string]bool{}
	for _, t := range l.trails {
		clients[t.client] = true
	}
	report.Clients = len(clients)
	for _, finding := range l.said {
		report.Findings = append(report.Findings, *finding)
	}
	slices.SortFunc(report.Findings, func(a, b Finding) int {
		return cmp.Or(b.First.Compare(a.First), cmp.Compare(a.Sentence, b.Sentence))
	})
	return report
}

// acts are subresources that can change things by GET.
var acts = map[string]bool{"exec": true, "attach": true, "portforward": true, "proxy": true}

// refuse returns the error for a request that may not pass; nil: it may. header is the answer's.
func (l *Lens) refuse(header http.Header, r *http.Request) error {
	if l.config.Writes {
		return nil
	}
	const how = "; start viz with -server-writes to let such requests through"
	switch ask, clean := newAsk(r), askPath(path.Clean(r.URL.Path)); {
	case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions:
		header.Set("Allow", "GET, HEAD, OPTIONS")
		return negotiation.Refusal(http.StatusMethodNotAllowed,
			"the lens only lets GET and HEAD through: it forwards to a server that is not its own"+how)
	case acts[ask.Subresource] || acts[clean.Subresource] || ask.plural() == "proxy":
		return negotiation.Refusal(http.StatusForbidden,
			"the lens does not let %s through, which can change things although it is a GET"+how, ask.Subresource)
	case len(r.Header["Upgrade"]) > 0: // ?watch=true makes no watch of an exec: servers ignore unknown parameters
		return negotiation.Refusal(http.StatusForbidden, "the lens does not let this request become another "+
			"protocol, which is a stream in both directions"+how)
	}
	return nil
}
