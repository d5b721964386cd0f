package viz

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"listwatch/viz/frame"
	"listwatch/viz/reply"
	"listwatch/viz/stage"
)

// UI serves the page. It is an http.Handler for the whole port.
type UI struct {
	pictures *Pictures
	handler  http.Handler
	done     chan struct{} // closed by Run when it ends, which ends every open feed; never sent on
}

// New returns the server of a page that shows pictures and their log. It starts no goroutine; [UI.Run] does the work.
// api answers every path that is not the page's, as a kube-apiserver would; if nil, those paths are 404. hosts are the
// server's names and addresses besides loopback, as in [Guard].
func New(pictures *Pictures, page *frame.Page, api http.Handler, hosts ...string) *UI {
	u := &UI{pictures: pictures, done: make(chan struct{})}
	router := chi.NewRouter()
	router.Use(middleware.GetHead)
	page.Mount(router)
	router.Get("/viz/assets/*", serveAsset)
	router.Handle("GET /viz/events", events{pictures: pictures, news: page.Hold.News, done: u.done,
		attend: page.Hold.Attend})
	router.NotFound(func(w http.ResponseWriter, r *http.Request) {
		// Requests below our own paths stay here even if the API is another program's.
		if api == nil || strings.HasPrefix(r.URL.Path, "/viz/") || strings.HasPrefix(r.URL.Path, "/book/") {
			reply.Error(w, r, http.StatusNotFound, "there is nothing at this path")
			return
		}
		api.ServeHTTP(w, r)
	})
	router.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		reply.Error(w, r, http.StatusMethodNotAllowed, r.Method+" is not supported here")
	})
	u.handler = Guard(hosts...)(router)
	return u
}

// Run keeps the folded state current until ctx is done, then ends every open feed. Call it once.
func (u *UI) Run(ctx context.Context) {
	defer close(u.done)
	u.pictures.Run(ctx)
}

// ServeHTTP answers one request, unless [Guard] refuses it.
func (u *UI) ServeHTTP(w http.ResponseWriter, r *http.Request) { u.handler.ServeHTTP(w, r) }

// rooms holds the scripts, styles, pictures and fonts of all rooms, by room. It also embeds export's script, which no
// page of the program loads.
//
//go:embed */*.js */*.css */*.svg */*.woff2
var rooms embed.FS

// mediaTypes maps file extensions to types. Package mime would use the desktop's table on some systems. If .js is not a
// script there, a browser refuses the scripts, because of nosniff. Add a new extension to go:embed above, too, and to
// assets of rooms_test.go.
var mediaTypes = map[string]string{
	".css":   "text/css; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".svg":   "image/svg+xml",
	".woff2": "font/woff2",
}

// readAsset returns a file by "ROOM/NAME": an embedded one, but none of export's, or the generated stage/tall.css.
func readAsset(name string) ([]byte, error) {
	switch {
	case name == "stage/tall.css":
		return stage.TallStyle(), nil
	case strings.HasPrefix(name, "export/"):
		return nil, fs.ErrNotExist
	}
	return rooms.ReadFile(name)
}

// serveAsset answers GET /viz/assets/ROOM/NAME, with an ETag of the content for conditional requests.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	name := chi.URLParam(r, "*")
	body, err := readAsset(name)
	if err != nil {
		reply.Error(w, r, http.StatusNotFound, "no such asset")
		return
	}
	sum := sha256.Sum256(body)
	w.Header().Set("Content-Type", mediaTypes[path.Ext(name)])
	w.Header().Set("ETag", `"`+hex.EncodeToString(sum[:8])+`"`)
	w.Header().Set("Cache-Control", "no-cache") // a cache may keep it but must revalidate: the binary may be a new one
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(body))
}

// contentSecurityPolicy lets a page load only from its own origin, and forbids inline scripts and styles, because
// names, labels and error texts come from any client that can create a pod.
const contentSecurityPolicy = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; " +
	"object-src 'none'"

// Guard returns the middleware in front of the whole port, pages and API alike. It refuses requests that a foreign web
// page could make a browser send: those with a foreign Host (421), cross-origin writes and cross-origin websockets
// (403). Other cross-origin reads pass, but have no effects: see [reply.Foreign]. It sets the headers that isolate
// pages. Clients that are not browsers, such as kubectl and curl, send neither Origin nor Sec-Fetch-Site, and pass the
// cross-origin checks.
//
// Loopback names and addresses are always allowed hosts. hosts are additional ones, with or without a port, such as the
// listen address. An unspecified address, "", "0.0.0.0" or "::", admits every IP address, which no DNS answer can
// forge, but no name.
func Guard(hosts ...string) func(http.Handler) http.Handler {
	g := &guard{names: map[string]bool{}, origin: http.NewCrossOriginProtection()}
	for _, host := range hosts {
		name := hostname(host)
		addr, err := netip.ParseAddr(name)
		if name == "" || err == nil && addr.IsUnspecified() {
			g.anyAddr = true
			continue
		}
		g.names[name] = true
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(w, r, next) })
	}
}

// guard is the state of one [Guard], which never changes.
type guard struct {
	names   map[string]bool
	anyAddr bool
	origin  *http.CrossOriginProtection
}

func (g *guard) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	header := w.Header()
	header.Set("Content-Security-Policy", contentSecurityPolicy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	if !g.knows(r.Host) {
		reply.Error(w, r, http.StatusMisdirectedRequest, "this server is not called that: use the address it "+
			"listens on")
		return
	}
	if err := g.origin.Check(r); err != nil || foreignSocket(r) {
		reply.Error(w, r, http.StatusForbidden, "a page of another origin may not do this")
		return
	}
	next.ServeHTTP(w, r)
}

// knows reports whether a Host header is a name or an address of this server.
func (g *guard) knows(host string) bool {
	name := hostname(host)
	if addr, err := netip.ParseAddr(name); err == nil {
		return addr.Unmap().IsLoopback() || g.anyAddr || g.names[name]
	}
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || name != "" && g.names[name]
}

// foreignSocket reports whether a page of another origin requests a websocket. The request is a GET, so it passes the
// cross-origin check, and CORS does not hide the stream from the page.
func foreignSocket(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || r.Header.Get("Upgrade") == "" {
		return false
	}
	parsed, err := url.Parse(origin)
	return err != nil || parsed.Host != r.Host
}

// hostname returns the host of "host", "host:port" or "[v6]:port" in lower case.
func hostname(hostport string) string {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
