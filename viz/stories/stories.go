// Package stories shows the gallery of stories, the knobs, and the promises of the running pipeline. Knobs are defined
// in internal/play/sandbox/knobs.go, switches in chapters/15-pipeline, stories in internal/play/scenario/stories,
// promises in internal/observe/rules/checker.go, labs in chapters/*/labs.
package stories

import (
	"context"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5"

	"listwatch/internal/observe/rules"
	"listwatch/internal/observe/takes"
	"listwatch/internal/play/lab"
	"listwatch/internal/play/sandbox"
	"listwatch/internal/play/scenario"
	"listwatch/viz/reply"
)

// Recorded returns the place of each beat of a story in its embedded recording, or an error if either is missing.
func Recorded(s *scenario.Story) ([]scenario.Range, error) {
	take, ok := takes.Find(TakeOf(s.ID))
	if !ok {
		return nil, fmt.Errorf("the story %s has no recording", s.ID)
	}
	_, records, err := take.Load()
	if err != nil {
		return nil, err
	}
	return s.Locate(records)
}

// Tour is the name of the recording of the story that the first view offers.
const Tour = takes.StoryPrefix + "tour"

// TakeOf returns the name of the recording of a story.
func TakeOf(id string) string { return takes.StoryPrefix + id }

// ThreadURL returns the GitHub address of a thread such as kubernetes/kubernetes#125123.
func ThreadURL(ref string) string {
	return "https://github.com/" + strings.Replace(ref, "#", "/issues/", 1)
}

// Times of auto-play, in milliseconds. PaceOf scales all times of a story's beats if their sum is not in [least, most].
const (
	perWord   = 210    // the reading time of a word
	atLeast   = 900    // the pause between words and picture
	thinking  = 2500   // the time to guess, after reading
	looking   = 1900   // the rest at the end of a beat
	perRecord = 22     // the average time of a record at reading pace
	shortest  = 1200   // the shortest play of a beat
	longest   = 5500   // the longest play of a beat
	least     = 21_000 // the shortest play of a story
	most      = 84_000 // the longest play of a story
)

// Pace has the milliseconds that auto-play takes to read a beat, to play it, and to rest at its end.
type Pace struct {
	Lead float64 `json:"lead"`
	Play float64 `json:"play"`
	Rest float64 `json:"rest"`
}

// PaceOf returns the pace of each beat of a story. recorded has the beats' places in the recording.
func PaceOf(s *scenario.Story, recorded []scenario.Range) []Pace {
	pace, sum := make([]Pace, len(s.Beats)), 0.0
	for i, beat := range s.Beats {
		lead, rest := atLeast+perWord*words(beat.Say), looking
		if q := beat.Question; q != nil {
			lead += thinking + perWord*words(append([]string{q.Ask}, q.Answers...)...)
			rest += perWord * words(q.Why)
		}
		play := min(longest, max(shortest, perRecord*int(recorded[i].To-recorded[i].From)))
		pace[i] = Pace{float64(lead), float64(play), float64(rest)}
		sum += float64(lead + play + rest)
	}
	scale := min(most, max(least, sum)) / sum
	for i := range pace {
		pace[i] = Pace{pace[i].Lead * scale, pace[i].Play * scale, pace[i].Rest * scale}
	}
	return pace
}

// words counts the words of texts.
func words(texts ...string) int { return len(strings.Fields(strings.Join(texts, " "))) }

// Promises serves the checks of the ten promises. It has no routes without a Monitor.
type Promises struct {
	Monitor *rules.Monitor
	Lab     *lab.Lab // the lab in whose working copy the program runs, or nil
}

// Mount adds the routes of the promises.
func (p Promises) Mount(router chi.Router) {
	if p.Monitor == nil {
		return
	}
	router.Handle("GET /viz/rules", reply.With(p.report))
	router.Handle("GET /viz/panel/promises", reply.With(p.panel))
}

// Report returns the state of the promises, or nil if they are not checked.
func (p Promises) Report() *rules.Report {
	if p.Monitor == nil {
		return nil
	}
	return new(p.Monitor.Report())
}

// report answers with the state of the promises, and the records that broke one.
func (p Promises) report(r *http.Request) (any, error) {
	p.Monitor.Look(r.Context())
	return p.Monitor.Report(), nil
}

// panel answers with what the page renews about promises, after a check of the records that are not checked yet.
func (p Promises) panel(r *http.Request) (any, error) {
	p.Monitor.Look(r.Context())
	return PromisesNow(p.Report(), p.Lab), nil
}

// Gallery serves the stories, in order.
type Gallery struct {
	Stories []scenario.Story
	// Play plays a story to its end on the pipeline; nil if stories are told from their recordings.
	Play func(ctx context.Context, id string) (scenario.Seen, error)
}

// Mount adds the routes of the stories; the one that plays a story only if Play is set.
func (g Gallery) Mount(router chi.Router) {
	router.Handle("GET /viz/scenarios", reply.With(g.all))
	router.Handle("GET /viz/scenario/{id}", reply.With(g.tell))
	if g.Play != nil {
		router.Handle("POST /viz/scenario/{id}", reply.With(g.play))
	}
}

// storyTold is a story in a response.
type storyTold struct {
	scenario.Story
	Take string `json:"take"` // the name of the embedded recording
}

func (g Gallery) all(*http.Request) (any, error) {
	all := []storyTold{}
	for _, each := range g.Stories {
		all = append(all, storyTold{each, TakeOf(each.ID)})
	}
	return all, nil
}

// tell answers GET /viz/scenario/ID with the data to tell a story, from a run or from its recording.
func (g Gallery) tell(r *http.Request) (any, error) {
	id := chi.URLParam(r, "id")
	i := slices.IndexFunc(g.Stories, func(s scenario.Story) bool { return s.Tells(id) })
	if i < 0 {
		return nil, reply.Refuse(http.StatusNotFound, "there is no story of that name")
	}
	story := &g.Stories[i]
	recorded, err := Recorded(story)
	if err != nil {
		return nil, err
	}
	panel, err := templ.ToGoHTML(r.Context(), told(story, &g.Stories[(i+1)%len(g.Stories)]))
	told, pace := storyTold{*story, TakeOf(story.ID)}, PaceOf(story, recorded)
	return struct {
		storyTold
		Pace     []Pace           `json:"pace"`
		Recorded []scenario.Range `json:"recorded"`
		Panel    template.HTML    `json:"panel"` // the words of the page, beat by beat
	}{told, pace, recorded, panel}, err
}

func (g Gallery) play(r *http.Request) (any, error) {
	return g.Play(r.Context(), chi.URLParam(r, "id"))
}

// Sandbox changes the running pipeline, other than by writes; [sandbox.Sandbox] implements it. An error that is an
// apierrors.APIStatus keeps its status.
type Sandbox interface {
	Turn(ctx context.Context, story *sandbox.Run, knob sandbox.Knob) (sandbox.Receipt, error)
	Knobs() sandbox.KnobState
	Reset(ctx context.Context) (sandbox.Receipt, error)

	AddWatcher(ctx context.Context, story *sandbox.Run, options sandbox.WatcherOptions) (sandbox.WatcherInfo,
		sandbox.Receipt, error)
	RemoveWatcher(ctx context.Context, id string) error
	Watchers() []sandbox.WatcherInfo
}

// Knobs serves the knobs of the running pipeline. It has no routes without a Sandbox.
type Knobs struct{ Sandbox Sandbox }

// Mount adds the routes of the knobs and of the added watchers.
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

// View returns the panel in its current state, or an empty one without a Sandbox.
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

// obeyed returns the response to a command: 200 and the state of all knobs, or 202 and the command's id, too, if the
// command waits in a held world. A CommandEnded record with that id then reports its end.
func (k Knobs) obeyed(receipt sandbox.Receipt) any {
	if !receipt.UnderWay {
		return k.Sandbox.Knobs()
	}
	return reply.Coded{Code: http.StatusAccepted, Value: struct {
		ID uint64 `json:"id"`
		sandbox.KnobState
	}{receipt.ID, k.Sandbox.Knobs()}}
}

// addWatcher opens a watcher. In a held world the answer is 202 with the watcher's id, even if opening fails later.
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
