package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/observe/probe"
	"listwatch/internal/play/sandbox"
)

// Story is one story.
type Story struct {
	ID      string `json:"id"`
	Title   string `json:"title"`
	Symptom string `json:"symptom"` // what people see at work before they know why; one incident a line
	Chapter string `json:"chapter"` // folder of the chapter that explains it: "06-cacher"
	// upstream's discussions: "kubernetes/kubernetes#125123", a space between two; "": none
	Thread string   `json:"thread"`
	Beats  []Beat   `json:"beats"`         // how it is told, four to seven
	Was    []string `json:"was,omitempty"` // former stories whose incidents it tells: their addresses lead to it
	Group  string   `json:"group"`         // what is wrong there: one of [Groups]
	Means  string   `json:"means"`         // what follows for those who run such a thing, said when the story is over
	// Pod is what the story's pod a is called; it is scheduled and run then. "": it is called as the others are, by the
	// story's id and its letter, and is no controller's.
	Pod string `json:"pod,omitempty"`
	// Unfolds says that the stage names a station only once a beat has been about it.
	Unfolds bool `json:"unfolds,omitempty"`
	// Cast are the watchers whose lanes stand first on the stage, in this order.
	Cast []Member `json:"cast,omitempty"`
	// Versions are what the stage calls the versions of the story's pod a, oldest first; none: a, a1, a2, and so on.
	Versions []string `json:"versions,omitempty"`
	// Alone says why the story needs a world of its own; "": it is played on the running pipeline. Others are told from
	// their recordings, which are made in such a world.
	Alone string `json:"alone,omitempty"`

	Prepare []step `json:"prepare,omitempty"` // before the story begins: none of that is told
	// Moral is what the records of a run must show beside its beats, so that what the story says of them is true.
	Moral []claim `json:"moral,omitempty"`
	Saw   string  `json:"saw"` // what was seen, with variables for the numbers of a run
}

// Groups are the kinds of trouble that stories begin with, in the order of the gallery.
var Groups = []string{"Lost", "Too slow", "Stale", "How it works"}

// Member is a client that a story is about.
type Member struct {
	Name string `json:"name"`
	// Is says it by what its stream, or its watcher, says in words, as [probe.Query] has fields.
	Is map[probe.Field]string `json:"is"`
	// Nth says which one of several such clients it is, by the order in which they came; 0 is the first.
	Nth int `json:"nth,omitempty"`
	// Pin lets a pin at the ring show the version that the client knows.
	Pin bool `json:"pin,omitempty"`
	// Other is the API server at which the client watches while it has no watcher on stage; "": there is one server.
	Other string `json:"other,omitempty"`
}

// Beat is one step in the telling of a story: what is said before it, where to look, and where it comes to rest. It
// begins where the beat before it rests.
type Beat struct {
	Title    string          `json:"title,omitempty"` // what it is about; "": its words say so
	Say      string          `json:"say"`
	Look     []probe.Station `json:"look"` // in the order of the path; all others are dimmed
	Question *Question       `json:"question,omitempty"`
	// Seen says what the picture shows where the beat rests. At is a station, or a member of the cast, perhaps with one
	// of its queues, and Text is what is written there because of one record: the regular expression of a whole text.
	// $rv, $n and $type in both are those of that record, [Range.Behind]; so are its fields in Seen.
	Seen string `json:"seen"`
	At   string `json:"at"`
	Text string `json:"text"`
	// the record behind Text, the last one up to where the beat rests; nil: that where it rests
	Because *pattern `json:"because,omitempty"`

	Do   []step `json:"do,omitempty"`   // plays it
	Rest moment `json:"rest"`           // is waited for then
	As   string `json:"as,omitempty"`   // names the record at which it rests; "": nothing refers to it
	Then []step `json:"then,omitempty"` // counts and holds what follows from that record
}

// Question is asked before a beat; what the beat shows answers it.
type Question struct {
	Ask     string   `json:"ask"`
	Answers []string `json:"answers"`       // two to four
	Right   int      `json:"right"`         // index of the answer that the beat shows to be true
	Why     string   `json:"why,omitempty"` // why that is so, said when it has been shown
}

// podName returns the name of the story's pod of a letter: "ring-wrap-a".
func (s *Story) podName(letter string) string {
	if letter == "a" && s.Pod != "" {
		return s.Pod
	}
	return s.ID + "-" + letter
}

// Tells reports whether the story has that id, or tells the incident of a former story of that id.
func (s Story) Tells(id string) bool { return s.ID == id || slices.Contains(s.Was, id) }

// Find returns the story that tells an id, nil if there is none.
func Find(id string) *Story {
	i := slices.IndexFunc(All, func(s Story) bool { return s.Tells(id) })
	if i < 0 {
		return nil
	}
	return &All[i]
}

// World is what stories are played on. All fields but Machine and Lab are required.
type World struct {
	Pipeline *pipeline.Pipeline
	Sandbox  *sandbox.Sandbox
	Log      *probe.Log
	Probe    *probe.Probe
	Clock    clock.WithTicker
	Machine  Machine // nil, as in the running program: stories that need one are not played
	// Lab says that the program runs in the working copy of a lab, where something is broken: a story waits for a
	// record no longer than labPatience, and calls it a symptom if the record does not come.
	Lab bool
}

// Machine does what stories do that need a world of their own. Nothing of that is undone: it ends with the story.
type Machine interface {
	// Do does what the words say, and waits for its end where that is said:
	//
	//	server stop        ends the server half; its clients are refused
	//	server start       starts another one on the same etcd
	//	etcd slow D        lets each list of etcd take so long
	//	etcd stop-leader   lets the node that leads die: reads that must not be stale wait, and writes are lost
	//	etcd elect         lets another node lead
	//	etcd restore V     lets etcd be as it was at a version, for the server that is started next
	//	other start        starts another server on the same etcd, of which nothing is recorded, and waits until it is
	//	                   ready; what connects from now on is connected to it
	//	other first        lets what connects from now on be connected to the first server again
	//	other hang         lets nothing more come from the other server
	//	other end          lets it die: its connections break
	Do(ctx context.Context, words ...string) error
}

// Seen is what a story came to.
type Seen struct {
	ID   string `json:"id"`
	From uint64 `json:"from"` // the records of the story are (From, To]
	To   uint64 `json:"to"`
	Saw  string `json:"saw"`
	// where each beat of the story stands; zero for one that is not in the records
	Beats   []Range `json:"beats"`
	Untold  string  `json:"untold,omitempty"`  // which beats these are
	Symptom string  `json:"symptom,omitempty"` // in a lab: the record that did not come
}

// Missing says that a record did not come for which a story has waited.
type Missing struct {
	Waited time.Duration
	Record string // in words
}

func (m *Missing) Error() string {
	return fmt.Sprintf("waited %v for a record that did not come: %s", m.Waited, m.Record)
}

// Unshown says that a run does not show what its story says of it.
type Unshown struct {
	Got, Want string
}

func (u *Unshown) Error() string { return fmt.Sprintf("got %s, want %s", u.Got, u.Want) }

const (
	// patience is how long a story waits for what must follow. A reflector that was often cut off waits 30 s, times up
	// to 2.
	patience = 75 * time.Second
	// labPatience is the same in a lab, where most stories fail: a person waits.
	labPatience = 10 * time.Second
)

// Play plays one story to its end, or until ctx is done; what it has changed is undone in either case, see
// [sandbox.Sandbox.Tell]. A story that needs a world of its own is not played where there is none: Untold says so.
// Errors: 404 for an unknown one, 409 while another is played, and otherwise what did not happen that should have.
func (w *World) Play(ctx context.Context, id string) (Seen, error) {
	story := Find(id)
	if story == nil {
		unknown := apierrors.NewNotFound(schema.GroupResource{Resource: "scenarios"}, id)
		unknown.ErrStatus.Message = "there is no story of that name"
		return Seen{}, unknown
	}
	tell := w.Sandbox.Tell
	if story.Alone != "" {
		if w.Machine == nil {
			now := w.Log.Last()
			untold := "The story is not played here: " + story.Alone
			return Seen{ID: id, From: now, To: now, Beats: make([]Range, len(story.Beats)), Untold: untold}, nil
		}
		tell = func(ctx context.Context, _ string, tell func(*sandbox.Telling) error) error {
			return tell(&sandbox.Telling{Ctx: ctx, Writing: ctx}) // nothing that must be undone
		}
	}
	played := make(chan Seen, 1) // sent once, by the story; room for it
	err := tell(ctx, id, func(t *sandbox.Telling) error {
		seen, err := newStagehand(t, w, story).play()
		played <- seen
		return err
	})
	if err != nil {
		return Seen{}, fmt.Errorf("%s: %w", id, err)
	}
	seen := <-played
	seen.To = w.Log.Last()
	return seen, nil
}

// play plays the story, and returns what was seen when nothing of it runs any more.
func (s *stagehand) play() (Seen, error) {
	ctx, cancel := context.WithCancel(s.Ctx)
	s.ctx = ctx
	err := s.playBeats()
	for _, queue := range s.queues {
		queue.Close()
	}
	for _, end := range s.ends {
		end()
	}
	cancel()
	s.group.Wait()
	err = errors.Join(err, s.read())
	var missing *Missing
	seen := Seen{ID: s.story.ID, From: s.from}
	if s.Lab && errors.As(err, &missing) {
		seen.Symptom, err = missing.Error(), nil
	}
	var unshown *Unshown
	if err == nil && seen.Symptom == "" {
		err = s.story.Shows(s.seen)
	}
	if errors.As(err, &unshown) {
		seen.Beats = make([]Range, len(s.story.Beats))
		seen.Untold = "The machine's run does not show what the story says: " + unshown.Error()
		return seen, nil
	}
	if err != nil {
		return Seen{}, err
	}
	if seen.Saw, err = s.expand(s.story.Saw); err != nil && seen.Symptom == "" {
		return Seen{}, err
	}
	if seen.Beats, err = s.story.Locate(s.seen); err != nil {
		seen.Untold = err.Error() // the run was played all the same; the recording has these beats
	}
	return seen, nil
}

// playBeats plays one beat after the other. Each has come to rest before the next one begins.
func (s *stagehand) playBeats() error {
	if err := s.doAll(s.story.Prepare); err != nil {
		return err
	}
	s.from = s.Log.Last()
	s.seen, s.facts = nil, newFacts(s.story)
	rest := s.from
	for i := range s.story.Beats {
		beat := &s.story.Beats[i]
		if err := s.doAll(beat.Do); err != nil {
			return fmt.Errorf("beat %d: %w", i+1, err)
		}
		r, err := s.await(beat.Rest, rest)
		if err != nil {
			return fmt.Errorf("beat %d: %w", i+1, err)
		}
		rest = r.Seq
		s.note(beat.As, r)
		if err := s.doAll(beat.Then); err != nil {
			return fmt.Errorf("beat %d, afterwards: %w", i+1, err)
		}
	}
	return nil
}
