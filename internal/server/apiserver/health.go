package apiserver

import (
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	handlers "listwatch/chapters/08-handlers"
)

// installHealth registers health checks and metrics. The server is alive as long as it answers, and ready when every
// cache has been filled once and etcd takes writes.
//
// Upstream: k8s.io/apiserver/pkg/server/healthz/healthz.go
// Differs: upstream's livez checks etcd, too. Here a restart would help neither etcd nor the caches, which still
// answer.
func installHealth(server *handlers.Server, config *Config, m *metrics) {
	server.HandlePlain(http.MethodGet, "/healthz", &health{name: "healthz"})
	server.HandlePlain(http.MethodGet, "/livez", &health{name: "livez"})
	server.HandlePlain(http.MethodGet, "/readyz", &health{name: "readyz", checks: []check{
		{"etcd", config.EtcdReady}, {"watch-cache", config.Ready}}})
	server.HandlePlain(http.MethodGet, "/metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
}

// check is one condition of readiness.
type check struct {
	name string
	ask  func() error // nil: not checked
}

// health serves one health endpoint. With ?verbose it lists the checks.
type health struct {
	name   string
	checks []check
}

func (h *health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	said, code := "[+]ping ok\n", http.StatusOK
	for _, each := range h.checks {
		if each.ask == nil {
			continue
		}
		if err := each.ask(); err != nil {
			said += fmt.Sprintf("[-]%s failed: %v\n", each.name, err)
			code = http.StatusInternalServerError
			continue
		}
		said += fmt.Sprintf("[+]%s ok\n", each.name)
	}
	switch {
	case code != http.StatusOK:
		writeText(w, code, said+h.name+" check failed\n")
	case r.URL.Query().Has("verbose"):
		writeText(w, code, said+h.name+" check passed\n")
	default:
		writeText(w, code, "ok")
	}
}

func writeText(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text))
}
