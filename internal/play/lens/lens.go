// Package lens forwards requests to another server, and describes its clients' mistakes. Each verdict is a function
// over a trail of requests; one table has all verdicts. A [Lens] owns the trails, under one lock.
//
// [Lens.Run] runs the verdicts about time; all others run in the goroutines of requests.
//
// Differs: upstream has nothing comparable; people read kubectl -v=8 or run mitmproxy.
package lens

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/kube/negotiation"
	"listwatch/internal/kube/redact"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
	"listwatch/internal/play/otherserver"
)

// Config describes a [Lens]. Servers and Clock are required.
type Config struct {
	Servers []*url.URL // the addresses of one server
	Writes  bool       // forward requests that write
	Clock   clock.WithTicker
}

// Lens forwards requests to another server, keeps facts about them, and judges them by [verdicts]. Its memory is
// bounded. It may be used from any goroutine.
type Lens struct {
	// Set by New, never changed.
	config    Config
	transport *otherserver.Transport

	mu       sync.Mutex // guards the fields below and their elements; taken before the log's mutex
	log      *probe.Log // receives records of requests and watches; nil: none
	running  map[*request]bool
	trails   map[string]*trail
	said     map[string]*Finding
	named    map[string]bool // resources with a name in the log
	requests uint64
}

// New returns a lens. It starts nothing. Some verdicts need [Lens.Run].
func New(config Config) *Lens {
	return &Lens{
		config: config, transport: otherserver.NewTransport(config.Servers),
		running: map[*request]bool{}, trails: map[string]*trail{}, said: map[string]*Finding{},
		named: map[string]bool{},
	}
}

// ServeHTTP forwards or refuses one request. It returns when the response has ended.
func (l *Lens) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := l.refuse(w.Header(), r); err != nil {
		handlers.WriteError(w, r, err)
		return
	}
	path, query := bound(r.URL.EscapedPath()), bound(redact.Query(r.URL.RawQuery))
	x := &exchange{lens: l, request: l.begin(newAsk(r), path, query)}
	defer x.finish(r.Context())
	proxy := httputil.ReverseProxy{
		Rewrite:        x.rewrite,
		Transport:      l.transport,
		FlushInterval:  -1, // send each frame at once
		ErrorLog:       log.New(io.Discard, "", 0),
		ModifyResponse: x.pass,
		ErrorHandler:   x.unreachable,
	}
	proxy.ServeHTTP(w, r)
}

// Run checks open requests and trails every second until ctx is done, then closes idle connections. Call it once.
func (l *Lens) Run(ctx context.Context) {
	defer l.transport.CloseIdleConnections()
	routine.Every(ctx, l.config.Clock, period, l.tick)
}

// passed lists the response headers that API clients need. The lens drops all others: a server sets them for its own
// origin, but here they would apply to ours.
var passed = strings.Fields("Allow Audit-Id Cache-Control Connection Content-Encoding Content-Length Content-Type " +
	"Date Etag Last-Modified Location Retry-After Sec-Websocket-Accept Sec-Websocket-Protocol Upgrade Vary Warning " +
	"Www-Authenticate X-Kubernetes-Pf-Flowschema-Uid X-Kubernetes-Pf-Prioritylevel-Uid X-Stream-Protocol-Version")

// guardBrowsers changes a response's header so that the response cannot run in a browser under our origin, or change
// our policies.
func guardBrowsers(header http.Header) {
	for name := range header {
		if !slices.Contains(passed, name) {
			header.Del(name)
		}
	}
	header.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
}

// Report describes a lens: its server, the numbers of its requests and of the clients in its trails, and its findings.
type Report struct {
	Server   string    `json:"server"`
	Writes   bool      `json:"writes"`
	Requests uint64    `json:"requests"`
	Clients  int       `json:"clients"`
	Findings []Finding `json:"findings"` // sorted by First, the newest first
}

// Report returns the findings so far. The caller owns the result.
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

// acts lists the subresources through which a GET can change the cluster.
var acts = map[string]bool{"exec": true, "attach": true, "portforward": true, "proxy": true}

// refuse returns the error for a forbidden request, or nil for an allowed one. For a 405 it sets Allow in header.
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
	case len(r.Header["Upgrade"]) > 0: // even with ?watch=true, because a server ignores it in an exec
		return negotiation.Refusal(http.StatusForbidden, "the lens does not let this request become another "+
			"protocol, which is a stream in both directions"+how)
	}
	return nil
}

// Show makes the lens write its records to this log, and no longer to an earlier one: about each API request, and about
// each watch as a watcher and its stream. Show itself writes the openings of open watches. The gate holds no request.
func (l *Lens) Show(log *probe.Log) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log = log
	for r := range l.running {
		if r.streams {
			l.showLocked(r)
		}
	}
}

// texts returns the texts for a record about the request.
func (r *request) texts(reason string) probe.Texts {
	return probe.NewTexts(map[string]string{"method": r.Method, "path": r.path, "query": r.query,
		"agent": short(r.Client), "version": r.Version, "reason": reason})
}

// tellLocked writes a record about a request to the log, if there is one.
func (l *Lens) tellLocked(r *request, point probe.Point, told probe.Record) {
	if l.log == nil {
		return
	}
	told.Point = point
	if point.Info().Station != probe.HTTP {
		told.Resource, told.Subject = r.named, "c"+strconv.FormatUint(r.id, 10)
	}
	l.log.Append(told)
}

// showLocked writes the records with which a watch opens.
func (l *Lens) showLocked(r *request) {
	l.tellLocked(r, probe.WatcherAdded, probe.Record{RV: storage.ProbeVersion(r.Version),
		Texts: probe.NewTexts(map[string]string{"prefix": r.what()})})
	l.tellLocked(r, probe.WireOpened, probe.Record{Texts: probe.NewTexts(map[string]string{"agent": r.Client,
		"path": r.path, "query": r.query, "version": r.Version})})
}

// closeLocked writes the records of a request's end.
func (l *Lens) closeLocked(r *request, bytes int64) {
	if r.streams {
		l.tellLocked(r, probe.WireClosed, probe.Record{Texts: probe.NewTexts(map[string]string{"why": r.cause})})
		l.tellLocked(r, probe.WatcherRemoved, probe.Record{})
	}
	reason := ""
	if r.reads() && r.rv != "" {
		reason = fmt.Sprintf("(%d bytes at version %s)", bytes, r.rv)
	}
	l.tellLocked(r, probe.RequestAnswered, probe.Record{Texts: r.texts(reason), Args: [4]int{r.status}})
}
