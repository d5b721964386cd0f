package viz

import (
	"context"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"listwatch/viz/frame"
	"listwatch/viz/reply"
)

// UI serves the page. It is an http.Handler for the whole port.
type UI struct {
	pictures *Pictures
	handler  http.Handler
	done     chan struct{} // closed by Run when it ends, never sent on: open feeds end
}

var _ http.Handler = (*UI)(nil)

// New returns what serves a page of the log that pictures folds. It starts nothing; [UI.Run] does. api answers every
// path that is not the page's, as a kube-apiserver would; nil: 404. hosts are the names and addresses by which the
// server may be called besides loopback, as in [Guard].
func New(pictures *Pictures, page *frame.Page, api http.Handler, hosts ...string) *UI {
	u := &UI{pictures: pictures, done: make(chan struct{})}
	router := chi.NewRouter()
	router.Use(middleware.GetHead)
	page.Mount(router)
	router.Get("/viz/assets/*", serveAsset)
	router.Handle("GET /viz/events", events{pictures: pictures, news: page.Hold.News, done: u.done,
		attend: page.Attend})
	router.NotFound(func(w http.ResponseWriter, r *http.Request) {
		// Requests below our own paths stay here also if the API is another program's.
		if api == nil || strings.HasPrefix(r.URL.Path, "/viz/") || strings.HasPrefix(r.URL.Path, "/book/") {
			reply.Error(w, r, http.StatusNotFound, "there is nothing at this path")
			return
		}
		api.ServeHTTP(w, r)
	})
	router.MethodNotAllowed(reply.MethodNotAllowed)
	u.handler = Guard(hosts...)(router)
	return u
}

// Run keeps the folded state current until ctx is done, then ends every open feed. It is called once.
func (u *UI) Run(ctx context.Context) {
	defer close(u.done)
	u.pictures.Run(ctx)
}

// ServeHTTP answers one request, if the [Guard] lets it in.
func (u *UI) ServeHTTP(w http.ResponseWriter, r *http.Request) { u.handler.ServeHTTP(w, r) }
