// Package lens forwards to a server that is not ours, and says in words what its clients do wrong: the verdicts,
// a table of functions over a trail of requests.
//
// The goroutine of a request looks at a piece of a watch once that has been written to the client. Goroutines:
// [Lens.Run] looks at the clock; everything else runs in the goroutines of requests.
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
	Writes  bool       // let requests pass that write
	Clock   clock.WithTicker
}

// Lens forwards requests to a server that is not ours, keeps what clients did, and judges it by [verdicts]. What it
// keeps is bounded in every respect. It may be used from any goroutine.
type Lens struct {
	// Set by New, never changed.
	config    Config
	transport *guest.Transport

	mu       sync.Mutex // guards the fields below, and what they lead to; innermost but for the log's
	log      *probe.Log // is told what the lens sees; nil: none is
	running  map[*request]bool
	trails   map[string]*trail
	objects  map[string]*object // that were written, by Ask.one
	said     map[string]*Finding
	named    map[string]bool // resources that the log names
	requests uint64
}

var _ http.Handler = (*Lens)(nil)

// New returns a lens. It starts nothing. Without [Lens.Run] it does not notice what only time tells.
func New(config Config) *Lens {
	return &Lens{
		config: config, transport: guest.NewTransport(config.Servers),
		running: map[*request]bool{}, trails: map[string]*trail{}, objects: map[string]*object{},
		said: map[string]*Finding{}, named: map[string]bool{},
	}
}

// ServeHTTP forwards one request, unless it may not pass. It returns when the answer has ended.
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
		FlushInterval:  -1, // a frame is sent on as it comes
		ErrorLog:       log.New(io.Discard, "", 0),
		ModifyResponse: x.pass,
		ErrorHandler:   x.unreachable,
	}
	proxy.ServeHTTP(w, r)
}

// Run looks once a second at the requests that are being forwarded, until ctx is done. It is called once.
func (l *Lens) Run(ctx context.Context) {
	defer l.transport.CloseIdleConnections()
	routine.Every(ctx, l.config.Clock, period, l.tick)
}

// passed are the headers of answers that clients of an API read. What else a server sets, it sets for its own origin;
// here it would set it for ours.
var passed = strings.Fields("Allow Audit-Id Cache-Control Connection Content-Encoding Content-Length Content-Type " +
	"Date Etag Last-Modified Location Retry-After Sec-Websocket-Accept Sec-Websocket-Protocol Upgrade Vary Warning " +
	"Www-Authenticate X-Kubernetes-Pf-Flowschema-Uid X-Kubernetes-Pf-Prioritylevel-Uid X-Stream-Protocol-Version")

// guardBrowsers sees to it that nothing that the server answers runs in a browser under our origin, or changes what
// that allows.
func guardBrowsers(header http.Header) {
	for name := range header {
		if !slices.Contains(passed, name) {
			header.Del(name)
		}
	}
	header.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
}

// Report is what the lens has seen.
type Report struct {
	Server   string    `json:"server"`
	Writes   bool      `json:"writes"`
	Requests uint64    `json:"requests"`
	Clients  int       `json:"clients"`
	Findings []Finding `json:"findings"` // the newest first
}

// Report returns what the lens has seen. The caller owns it.
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

// acts are subresources that do something although they are asked for with GET.
var acts = map[string]bool{"exec": true, "attach": true, "portforward": true, "proxy": true}

// refuse returns why a request may not pass, nil if it may; the header is that of the answer.
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
	case len(r.Header["Upgrade"]) > 0: // a server ignores what it does not know: ?watch=true makes a console no watch
		return negotiation.Refusal(http.StatusForbidden, "the lens does not let this request become another "+
			"protocol, which is a stream in both directions"+how)
	}
	return nil
}
