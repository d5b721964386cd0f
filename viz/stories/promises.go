package stories

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"listwatch/internal/observe/rules"
	"listwatch/internal/play/lab"
	"listwatch/viz/reply"
)

// Promises keeps the ten promises checked on the log. It is not mounted without a Monitor.
type Promises struct {
	Monitor *rules.Monitor
	Lab     *lab.Lab // in whose working copy the program runs; nil: in none
}

// Mount adds the room's routes.
func (p Promises) Mount(router chi.Router) {
	if p.Monitor == nil {
		return
	}
	router.Handle("GET /viz/rules", reply.With(p.report))
	router.Handle("GET /viz/panel/promises", reply.With(p.panel))
}

// Report returns how the promises stand; nil if they are not checked.
func (p Promises) Report() *rules.Report {
	if p.Monitor == nil {
		return nil
	}
	return new(p.Monitor.Report())
}

// report answers with how the promises stand, and which records have broken one.
func (p Promises) report(r *http.Request) (any, error) {
	p.Monitor.Look(r.Context())
	return p.Monitor.Report(), nil
}

// panel answers with how the promises stand, and the lab that is about one of them.
func (p Promises) panel(r *http.Request) (any, error) {
	p.Monitor.Look(r.Context())
	return PromisesNow(p.Report(), p.Lab), nil
}
