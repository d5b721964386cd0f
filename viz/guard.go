package viz

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"listwatch/viz/reply"
)

// contentSecurityPolicy lets a page load from its own origin only, and run no script and no style that is written
// into it. Names, labels and error texts come from any client that can create a pod.
const contentSecurityPolicy = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; " +
	"object-src 'none'"

// Guard returns the middleware in front of the whole port, pages and API alike. It refuses requests that a foreign web
// page could make a browser send: those under a foreign Host (421), cross-origin writes and cross-origin websockets
// (403). Other cross-origin reads pass and have no effects: see [reply.Foreign]. It sets the headers that keep pages to
// themselves. Clients that are not browsers, such as kubectl and curl, send neither Origin nor Sec-Fetch-Site and are
// not bothered.
//
// Loopback names and addresses are always good hosts. hosts are others, with or without a port: the address that is
// listened on. An unspecified address, "0.0.0.0" or "::", admits every IP address, which no DNS answer can forge, but
// still no name.
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

// guard is immutable.
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

// knows reports whether a Host header names this server.
func (g *guard) knows(host string) bool {
	name := hostname(host)
	if addr, err := netip.ParseAddr(name); err == nil {
		return addr.Unmap().IsLoopback() || g.anyAddr || g.names[name]
	}
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || name != "" && g.names[name]
}

// foreignSocket reports whether a page of another origin asks for a websocket. That is a GET, so it passes the
// cross-origin check, and what it streams is not hidden from the page by CORS.
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
