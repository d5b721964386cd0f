package viz

import (
	"context"
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"

	"listwatch/viz/stories"
)

// Sandbox is what can be done to the running pipeline besides writing to it. Errors that are an apierrors.APIStatus keep
// their status.
type Sandbox interface {
	// Turn turns one knob. It returns when that is done; the effects follow in the log.
	Turn(ctx context.Context, knob Knob) error
	// Knobs returns how everything stands that a knob can change, as something that marshals to JSON.
	Knobs() any
	// Reset makes everything what it was in the beginning.
	Reset(ctx context.Context) error
	// Play plays a scenario to its end and returns what was seen, as something that marshals to JSON. One at a time: the
	// error is 409 while another is played. An unknown one is 404.
	Play(ctx context.Context, id string) (any, error)
	// Tour notes that a page gives its tour, until end is called: the demo rests meanwhile.
	Tour(ctx context.Context) (end func())
}

// Knob is one thing to do.
type Knob = stories.Knob

// Scenario is one story that the page offers to play.
type Scenario = stories.Scenario

// routesOfSandbox are the commands below /viz/ that act on the pipeline.
func (u *UI) routesOfSandbox(router chi.Router) {
	router.Get("/viz/knobs", answering(u.knobs))
	router.Post("/viz/knobs", answering(u.turnKnob))
	router.Post("/viz/reset", answering(u.resetSandbox))
	router.Get("/viz/scenarios", answering(u.scenarios))
	router.Get("/viz/scenario/{id}", answering(u.tellScenario))
	router.Post("/viz/scenario/{id}", answering(u.playScenario))
}

// sandbox returns the sandbox; the error is 503 if there is none.
func (u *UI) sandbox() (Sandbox, error) {
	if u.config.Sandbox == nil {
		return nil, refuse(http.StatusServiceUnavailable, "nothing is running that could be acted on")
	}
	return u.config.Sandbox, nil
}

func (u *UI) knobs(*http.Request) (any, error) {
	sandbox, err := u.sandbox()
	if err != nil {
		return nil, err
	}
	return sandbox.Knobs(), nil
}

func (u *UI) turnKnob(r *http.Request) (any, error) {
	sandbox, err := u.sandbox()
	if err != nil {
		return nil, err
	}
	var knob Knob
	if err := readJSON(r, &knob); err != nil {
		return nil, err
	}
	err = sandbox.Turn(r.Context(), knob)
	return sandbox.Knobs(), err
}

func (u *UI) resetSandbox(r *http.Request) (any, error) {
	sandbox, err := u.sandbox()
	if err != nil {
		return nil, err
	}
	err = sandbox.Reset(r.Context())
	return sandbox.Knobs(), err
}

func (u *UI) scenarios(*http.Request) (any, error) {
	return append([]Scenario{}, u.config.Scenarios...), nil
}

// tellScenario answers GET /viz/scenario/ID with what the page needs to tell it, from a run or from its recording.
func (u *UI) tellScenario(r *http.Request) (any, error) {
	id := chi.URLParam(r, "id")
	i := slices.IndexFunc(u.config.Scenarios, func(s Scenario) bool { return s.ID == id })
	if i < 0 {
		return nil, refuse(http.StatusNotFound, "there is no story of that name")
	}
	story := u.config.Scenarios[i]
	recorded, err := story.Recorded()
	return struct {
		Scenario
		Recorded []stories.Range `json:"recorded"`
		Runs     bool            `json:"runs"` // there is a machine to play it
	}{story, recorded, u.config.Sandbox != nil}, err
}

func (u *UI) playScenario(r *http.Request) (any, error) {
	sandbox, err := u.sandbox()
	if err != nil {
		return nil, err
	}
	return sandbox.Play(r.Context(), chi.URLParam(r, "id"))
}
