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
	router.Get("/viz/knobs", u.listKnobs)
	router.Post("/viz/knobs", u.turnKnob)
	router.Post("/viz/reset", u.resetSandbox)
	router.Get("/viz/scenarios", u.listScenarios)
	router.Get("/viz/scenario/{id}", u.tellScenario)
	router.Post("/viz/scenario/{id}", u.playScenario)
}

// sandbox returns the sandbox, or answers that there is none.
func (u *UI) sandbox(w http.ResponseWriter) Sandbox {
	if u.config.Sandbox == nil {
		writeStatus(w, http.StatusServiceUnavailable, "nothing is running that could be acted on")
	}
	return u.config.Sandbox
}

func (u *UI) listKnobs(w http.ResponseWriter, _ *http.Request) {
	if sandbox := u.sandbox(w); sandbox != nil {
		writeJSON(w, http.StatusOK, sandbox.Knobs())
	}
}

func (u *UI) turnKnob(w http.ResponseWriter, r *http.Request) {
	sandbox := u.sandbox(w)
	if sandbox == nil {
		return
	}
	var knob Knob
	err := readJSON(w, r, &knob)
	if err == nil {
		err = sandbox.Turn(r.Context(), knob)
	}
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, sandbox.Knobs())
}

func (u *UI) resetSandbox(w http.ResponseWriter, r *http.Request) {
	sandbox := u.sandbox(w)
	if sandbox == nil {
		return
	}
	if err := sandbox.Reset(r.Context()); err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, sandbox.Knobs())
}

func (u *UI) listScenarios(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, append([]Scenario{}, u.config.Scenarios...))
}

// tellScenario answers GET /viz/scenario/ID with what the page needs to tell it, from a run or from its recording.
func (u *UI) tellScenario(w http.ResponseWriter, r *http.Request) {
	id := chi.URLParam(r, "id")
	i := slices.IndexFunc(u.config.Scenarios, func(s Scenario) bool { return s.ID == id })
	if i < 0 {
		writeStatus(w, http.StatusNotFound, "there is no story of that name")
		return
	}
	story := u.config.Scenarios[i]
	recorded, err := story.Recorded()
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, struct {
		Scenario
		Recorded []stories.Range `json:"recorded"`
		Runs     bool            `json:"runs"` // there is a machine to play it
	}{story, recorded, u.config.Sandbox != nil})
}

func (u *UI) playScenario(w http.ResponseWriter, r *http.Request) {
	sandbox := u.sandbox(w)
	if sandbox == nil {
		return
	}
	seen, err := sandbox.Play(r.Context(), chi.URLParam(r, "id"))
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, seen)
}
