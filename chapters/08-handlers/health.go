package handlers

import (
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"
)

// installHealth registers what watches over the server itself. Alive it is as long as it answers; ready it is when
// every cache has been filled once.
//
// Upstream: k8s.io/apiserver/pkg/server/healthz/healthz.go
func (s *server) installHealth(router chi.Router) {
	router.Method(http.MethodGet, "/healthz", &health{name: "healthz"})
	router.Method(http.MethodGet, "/livez", &health{name: "livez"})
	router.Method(http.MethodGet, "/readyz", &health{name: "readyz", ready: s.ready})
	router.Get("/metrics", s.metrics.handler().ServeHTTP)
}

// health answers one of the questions. With ?verbose it names what was looked at.
type health struct {
	name  string
	ready func() error // nil: nothing else is looked at
}

func (h *health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	checks := "[+]ping ok\n"
	if h.ready != nil {
		if err := h.ready(); err != nil {
			writeText(w, http.StatusInternalServerError, fmt.Sprintf("%s[-]watch-cache failed: %v\n%s check failed\n", checks, err, h.name))
			return
		}
		checks += "[+]watch-cache ok\n"
	}
	if r.URL.Query().Has("verbose") {
		writeText(w, http.StatusOK, checks+h.name+" check passed\n")
		return
	}
	writeText(w, http.StatusOK, "ok")
}

func writeText(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text))
}
