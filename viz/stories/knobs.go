package stories

import (
	"context"
	"net/http"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5"

	"listwatch/internal/play/sandbox"
	"listwatch/viz/reply"
)

// Sandbox is what can be done to the running pipeline besides writing to it: [sandbox.Sandbox], whose methods say what
// they do. Errors that are an apierrors.APIStatus keep their status.
type Sandbox interface {
	Turn(ctx context.Context, story *sandbox.Run, knob sandbox.Knob) (sandbox.Receipt, error)
	Knobs() sandbox.KnobState
	Reset(ctx context.Context) (sandbox.Receipt, error)

	AddWatcher(ctx context.Context, story *sandbox.Run, options sandbox.WatcherOptions) (sandbox.WatcherInfo,
		sandbox.Receipt, error)
	RemoveWatcher(ctx context.Context, id string) error
	Watchers() []sandbox.WatcherInfo
}

// Knobs is the room of what can be done to the running pipeline. It is not mounted without a Sandbox.
type Knobs struct{ Sandbox Sandbox }

// Mount adds the room's routes.
func (k Knobs) Mount(router chi.Router) {
	if k.Sandbox == nil {
		return
	}
	router.Handle("GET /viz/panel/knobs", reply.With(k.panel))
	router.Handle("GET /viz/knobs", reply.Look(k.Sandbox.Knobs))
	router.Handle("POST /viz/knobs", reply.Body(k.turn))
	router.Handle("POST /viz/reset", reply.With(k.reset))
	router.Handle("GET /viz/watchers", reply.Look(k.Sandbox.Watchers))
	router.Handle("POST /viz/watchers", reply.With(k.addWatcher))
	router.Handle("DELETE /viz/watchers/{id}", reply.With(k.removeWatcher))
}

// View is the panel as everything stands; without a Sandbox it can turn nothing.
func (k Knobs) View() templ.Component {
	if k.Sandbox == nil {
		return KnobsPanel(sandbox.KnobState{}, nil)
	}
	return KnobsPanel(k.Sandbox.Knobs(), k.Sandbox.Watchers())
}

func (k Knobs) panel(*http.Request) (any, error) { return k.View(), nil }

func (k Knobs) turn(r *http.Request, knob *sandbox.Knob) (any, error) {
	receipt, err := k.Sandbox.Turn(r.Context(), nil, *knob)
	return k.obeyed(receipt), err
}

func (k Knobs) reset(r *http.Request) (any, error) {
	receipt, err := k.Sandbox.Reset(r.Context())
	return k.obeyed(receipt), err
}

// obeyed answers a command with how everything is: 200 when it is done, 202 with its id when it stands in a held world.
// Then a record will say how it has ended, CommandEnded with this id.
func (k Knobs) obeyed(receipt sandbox.Receipt) any {
	if !receipt.UnderWay {
		return k.Sandbox.Knobs()
	}
	return reply.Coded{Code: http.StatusAccepted, Value: struct {
		ID uint64 `json:"id"`
		sandbox.KnobState
	}{receipt.ID, k.Sandbox.Knobs()}}
}

// addWatcher opens a watcher. In a held world the answer is 202 with the id that the watcher has, or will have lost.
func (k Knobs) addWatcher(r *http.Request) (any, error) {
	options := sandbox.WatcherOptions{Resource: "pods"}
	if err := reply.ReadJSON(r, &options); err != nil {
		return nil, err
	}
	added, receipt, err := k.Sandbox.AddWatcher(r.Context(), nil, options)
	if receipt.UnderWay {
		return reply.Coded{Code: http.StatusAccepted, Value: struct {
			sandbox.WatcherInfo
			Command uint64 `json:"command"`
		}{added, receipt.ID}}, err
	}
	return reply.Coded{Code: http.StatusCreated, Value: added}, err
}

func (k Knobs) removeWatcher(r *http.Request) (any, error) {
	return reply.Coded{Code: http.StatusNoContent}, k.Sandbox.RemoveWatcher(r.Context(), chi.URLParam(r, "id"))
}
