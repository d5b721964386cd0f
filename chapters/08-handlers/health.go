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
	router.Get("/healthz", s.healthy)
	router.Get("/livez", s.healthy)
	router.Get("/readyz", s.readyz)
	router.Get("/metrics", s.metrics.handler().ServeHTTP)
}

func (s *server) healthy(w http.ResponseWriter, _ *http.Request) {
	writeText(w, http.StatusOK, "ok")
}

func (s *server) readyz(w http.ResponseWriter, r *http.Request) {
	if s.ready == nil {
		s.healthy(w, r)
		return
	}
	if err := s.ready(); err != nil {
		writeText(w, http.StatusInternalServerError, fmt.Sprintf("[-]watch-cache failed: %v\nreadyz check failed\n", err))
		return
	}
	if r.URL.Query().Has("verbose") {
		writeText(w, http.StatusOK, "[+]ping ok\n[+]watch-cache ok\nreadyz check passed\n")
		return
	}
	s.healthy(w, r)
}

func writeText(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text))
}
