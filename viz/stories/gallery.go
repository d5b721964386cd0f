package stories

import (
	"context"
	"html/template"
	"net/http"
	"slices"

	"github.com/a-h/templ"
	"github.com/go-chi/chi/v5"

	"listwatch/internal/play/scenario"
	"listwatch/viz/reply"
)

// Gallery offers the stories, in order.
type Gallery struct {
	Stories []scenario.Story
	// Play plays a story on the machine, to its end; nil: the stories are told from their recordings.
	Play func(ctx context.Context, id string) (scenario.Seen, error)
}

// Mount adds the room's routes.
func (g Gallery) Mount(router chi.Router) {
	router.Handle("GET /viz/scenarios", reply.With(g.all))
	router.Handle("GET /viz/scenario/{id}", reply.With(g.tell))
	if g.Play != nil {
		router.Handle("POST /viz/scenario/{id}", reply.With(g.play))
	}
}

// storyTold is a story as the page offers it.
type storyTold struct {
	scenario.Story
	Take string `json:"take"` // the recording that the program brings along
}

func (g Gallery) all(*http.Request) (any, error) {
	all := []storyTold{}
	for _, each := range g.Stories {
		all = append(all, storyTold{each, TakeOf(each.ID)})
	}
	return all, nil
}

// tell answers GET /viz/scenario/ID with what the page needs to tell it, from a run or from its recording.
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
	panel, err := templ.ToGoHTML(r.Context(), Beats(story))
	told, pace := storyTold{*story, TakeOf(story.ID)}, PaceOf(story, recorded)
	return struct {
		storyTold
		Pace     []Pace           `json:"pace"`
		Recorded []scenario.Range `json:"recorded"`
		Panel    template.HTML    `json:"panel"` // what the page says, beat by beat
	}{told, pace, recorded, panel}, err
}

func (g Gallery) play(r *http.Request) (any, error) {
	return g.Play(r.Context(), chi.URLParam(r, "id"))
}
