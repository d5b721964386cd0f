package viz

import (
	"context"
	"html/template"
	"net/http"
	"slices"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5"

	"listwatch/internal/play/sandbox"
	"listwatch/internal/play/scenario"
	"listwatch/viz/console"
	"listwatch/viz/stories"
	"listwatch/viz/tour"
)

// Sandbox is what can be done to the running pipeline besides writing to it: [sandbox.Sandbox], whose methods say what
// they do. Errors that are an apierrors.APIStatus keep their status.
type Sandbox interface {
	Turn(ctx context.Context, story *sandbox.Telling, knob sandbox.Knob) (sandbox.Receipt, error)
	Knobs() sandbox.KnobState
	Reset(ctx context.Context) (sandbox.Receipt, error)
	Tour() (end func() (last bool))

	AddWatcher(ctx context.Context, story *sandbox.Telling, options sandbox.WatcherOptions) (sandbox.WatcherInfo,
		sandbox.Receipt, error)
	RemoveWatcher(ctx context.Context, id string) error
	Watchers() []sandbox.WatcherInfo

	Ask(r *http.Request) (*http.Response, error)
}

func (u *UI) turnKnob(r *http.Request, knob *sandbox.Knob) (any, error) {
	receipt, err := u.config.Sandbox.Turn(r.Context(), nil, *knob)
	return u.obeyed(receipt), err
}

func (u *UI) resetSandbox(r *http.Request) (any, error) {
	receipt, err := u.config.Sandbox.Reset(r.Context())
	return u.obeyed(receipt), err
}

// obeyed answers a command with how everything is: 200 when it is done, 202 with its id when it stands in a held world.
// Then a record will say how it has ended, CommandEnded with this id.
func (u *UI) obeyed(receipt sandbox.Receipt) any {
	if !receipt.UnderWay {
		return u.config.Sandbox.Knobs()
	}
	return answered{http.StatusAccepted, struct {
		ID uint64 `json:"id"`
		sandbox.KnobState
	}{receipt.ID, u.config.Sandbox.Knobs()}}
}

func (u *UI) watchers(*http.Request) (any, error) {
	if u.config.Sandbox == nil {
		return []sandbox.WatcherInfo{}, nil
	}
	return u.config.Sandbox.Watchers(), nil
}

// addWatcher opens a watcher. In a held world the answer is 202 with the id that the watcher has, or will have lost.
func (u *UI) addWatcher(r *http.Request) (any, error) {
	options := sandbox.WatcherOptions{Resource: "pods"}
	if err := readJSON(r, &options); err != nil {
		return nil, err
	}
	added, receipt, err := u.config.Sandbox.AddWatcher(r.Context(), nil, options)
	if receipt.UnderWay {
		return answered{http.StatusAccepted, struct {
			sandbox.WatcherInfo
			Command uint64 `json:"command"`
		}{added, receipt.ID}}, err
	}
	return answered{http.StatusCreated, added}, err
}

func (u *UI) removeWatcher(r *http.Request) (any, error) {
	return answered{code: http.StatusNoContent}, u.config.Sandbox.RemoveWatcher(r.Context(), chi.URLParam(r, "id"))
}

// storyTold is a story as the page offers it.
type storyTold struct {
	scenario.Story
	Take string `json:"take"` // the recording that the program brings along
}

func (u *UI) scenarios(*http.Request) (any, error) {
	all := []storyTold{}
	for _, each := range u.config.Scenarios {
		all = append(all, storyTold{each, stories.TakeOf(each.ID)})
	}
	return all, nil
}

// tellScenario answers GET /viz/scenario/ID with what the page needs to tell it, from a run or from its recording.
func (u *UI) tellScenario(r *http.Request) (any, error) {
	id := chi.URLParam(r, "id")
	i := slices.IndexFunc(u.config.Scenarios, func(s scenario.Story) bool { return s.Tells(id) })
	if i < 0 {
		return nil, refuse(http.StatusNotFound, "there is no story of that name")
	}
	story := &u.config.Scenarios[i]
	recorded, err := stories.Recorded(story)
	if err != nil {
		return nil, err
	}
	panel, err := templ.ToGoHTML(r.Context(), stories.Beats(story))
	told, pace := storyTold{*story, stories.TakeOf(story.ID)}, stories.PaceOf(story, recorded)
	return struct {
		storyTold
		Pace     []stories.Pace   `json:"pace"`
		Recorded []scenario.Range `json:"recorded"`
		Panel    template.HTML    `json:"panel"` // what the page says, beat by beat
	}{told, pace, recorded, panel}, err
}

// tellTour answers GET /viz/scenario/tour with the tour as it is told from the recording that the program brings along.
func (u *UI) tellTour(*http.Request) (any, error) { return tour.Recorded() }

// actTour answers POST /viz/tour, which does the next act of a tour, with the tour as it is then.
func (u *UI) actTour(r *http.Request, t *tour.Tour) (any, error) {
	return t, u.tours().Act(r.Context(), t)
}

// tours is what the page's tours act on.
func (u *UI) tours() *tour.Machine {
	c := &u.config
	return &tour.Machine{Sandbox: c.Sandbox, Client: c.Client, Log: c.Log, Keyframe: u.Keyframe}
}

func (u *UI) playScenario(r *http.Request) (any, error) {
	return u.config.Play(r.Context(), chi.URLParam(r, "id"))
}

// asked is the body of POST /viz/console.
type asked struct {
	Request string `json:"request"` // "GET /api/v1/pods\n…"
}

// console answers with what the server says to a request, as it arrives: see [console.Answer]. 400 for what is no
// request, and the sandbox's errors.
func (u *UI) console(r *http.Request, written *asked) (any, error) {
	request, err := console.Read(written.Request)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "%v", err)
	}
	response, err := u.config.Sandbox.Ask(request.WithContext(r.Context()))
	return console.Answer{Response: response}, err
}
