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

// Story is one file of stories/, as the package comment describes.
type Story struct {
	ID      string `json:"id"`
	Title   string `json:"title"`
	Symptom string `json:"symptom"` // the problem at work; one incident a line
	Search  string `json:"search"`  // the title of the story's page: words that people search for
	Chapter string `json:"chapter"` // folder of the chapter about the symptom: "06-cacher"
	// Upstream's discussions, separated by spaces: "kubernetes/kubernetes#125123"; "": none.
	Thread string   `json:"thread"`
	Beats  []Beat   `json:"beats"`         // four to seven, or up to twelve with Unfolds
	Was    []string `json:"was,omitempty"` // ids of former stories with these incidents; their addresses lead here
	Group  string   `json:"group"`         // one of [Groups]
	Means  string   `json:"means"`         // the lesson for operators, shown at the end
	// Pod is the name of the story's pod a. Controllers then schedule and run that pod. "": no controller acts on pod
	// a, and its name is the story's id and the letter, like other pods' names.
	Pod string `json:"pod,omitempty"`
	// Unfolds makes the stage show a station's name only from the first beat on that has the station in Look.
	Unfolds bool `json:"unfolds,omitempty"`
	// Cast lists the clients whose lanes come first on the stage, in this order.
	Cast []Member `json:"cast,omitempty"`
	// Versions are the names for the versions of the story's pod a on the stage, oldest first; none: a, a1, a2, …
	Versions []string `json:"versions,omitempty"`
	// Alone is the reason why the story needs a world of its own; "": the story plays on the running pipeline. The page
	// shows a story that needs its own world from a recording, which is made in such a world.
	Alone string `json:"alone,omitempty"`

	Prepare []step `json:"prepare,omitempty"` // steps before the story begins; not shown
	// Moral lists the story's claims about the records of a whole run.
	Moral []claim `json:"moral,omitempty"`
	Saw   string  `json:"saw"` // the outcome, with variables for the run's numbers
}

// Groups are the kinds of symptoms, in the gallery's order.
var Groups = []string{"Lost", "Too slow", "Stale", "How it works"}

// Member is a client in a story.
type Member struct {
	Name string `json:"name"`
	// Is selects the client's stream or watcher by texts of its records, like the Fields of a [probe.Query].
	Is map[probe.Field]string `json:"is"`
	// Nth is the client's index, in the order of arrival from 0, among several clients with the same texts.
	Nth int `json:"nth,omitempty"`
	// Pin makes a pin at the ring show the client's version.
	Pin bool `json:"pin,omitempty"`
	// Other is the API server of the client's other watches, which are not on the stage; "": there is only one server.
	Other string `json:"other,omitempty"`
}

// Beat is one part of a story: a text, the stations to look at, and the record at which the beat rests. It begins where
// the beat before rests.
type Beat struct {
	Title    string          `json:"title,omitempty"` // optional
	Say      string          `json:"say"`
	Look     []probe.Station `json:"look"` // in the order of the path; the other stations are dimmed
	Question *Question       `json:"question,omitempty"`
	// Seen describes the picture where the beat rests. At is a station or a member of the cast, perhaps with one of its
	// queues. Text is a regular expression for a whole text at that place, which one record caused: [Range.Behind].
	// That record's values replace $rv, $n and $type in Seen and Text, and the names of its fields in Seen.
	Seen string `json:"seen"`
	At   string `json:"at"`
	Text string `json:"text"`
	// The record behind Text is the last match of this pattern up to the rest; nil: the record of the rest.
	Because *pattern `json:"because,omitempty"`

	Do   []step `json:"do,omitempty"`   // steps that play the beat
	Rest rest   `json:"rest"`           // awaited after Do
	As   string `json:"as,omitempty"`   // a name for the rest's record; "": none
	Then []step `json:"then,omitempty"` // checks after the rest
}

// Question is asked before a beat, which answers it.
type Question struct {
	Ask     string   `json:"ask"`
	Answers []string `json:"answers"`       // two to four
	Right   int      `json:"right"`         // index of the right answer
	Why     string   `json:"why,omitempty"` // shown after the beat
}

// podName returns the name of the story's pod with a letter: "selector-b". For "a" it is Pod, unless Pod is "".
func (s *Story) podName(letter string) string {
	if letter == "a" && s.Pod != "" {
		return s.Pod
	}
	return s.ID + "-" + letter
}

// Tells reports whether the story has that id, or replaces the former story of that id.
func (s Story) Tells(id string) bool { return s.ID == id || slices.Contains(s.Was, id) }

// Climax returns the index of the beat that answers the story's last question, or of the last beat if there is none.
func (s *Story) Climax() int {
	for i := range slices.Backward(s.Beats) {
		if s.Beats[i].Question != nil {
			return i
		}
	}
	return len(s.Beats) - 1
}

// Find returns the story with an id, or the one that has replaced it, see [Story.Tells]; nil: none.
func Find(id string) *Story {
	i := slices.IndexFunc(All, func(s Story) bool { return s.Tells(id) })
	if i < 0 {
		return nil
	}
	return &All[i]
}

// Env has the parts that stories use. All fields but Operator and Lab are required.
type Env struct {
	Pipeline *pipeline.Pipeline
	Sandbox  *sandbox.Sandbox
	Log      *probe.Log
	Probe    *probe.Probe
	Clock    clock.WithTicker
	Operator Operator // nil, as in the running program: stories that need an Operator are skipped
	// Lab is set if the program runs in the broken working copy of a lab. A story then waits at most labPatience for
	// each record, and a missing record is a symptom.
	Lab bool
}

// Operator runs the steps that need a world of their own. The steps are not undone: the world ends with the story.
type Operator interface {
	// Do runs one of these commands:
	//
	//	server stop        ends the server half; its clients are refused
	//	server start       starts another one on the same etcd
	//	etcd slow D        each list request to etcd takes the duration D
	//	etcd restore V     restores etcd's state at version V, for the next server
	//	other start        starts another server on the same etcd, without a recording, and waits until it is ready;
	//	                   new connections lead to it
	//	other first        new connections lead to the first server again
	//	other hang         the other server sends nothing more
	//	other end          the other server dies: its connections break
	Do(ctx context.Context, words ...string) error
}

// Seen is the outcome of a story.
type Seen struct {
	ID   string `json:"id"`
	From uint64 `json:"from"` // the story's records are (From, To]
	To   uint64 `json:"to"`
	Saw  string `json:"saw"`
	// One range for each beat; it is zero if the beat is not in the records.
	Beats   []Range `json:"beats"`
	Untold  string  `json:"untold,omitempty"`  // the missing beats, an unmet claim, or why the story was not played
	Symptom string  `json:"symptom,omitempty"` // in a lab: the missing record
}

// Missing is the error of a story whose record has not come in time.
type Missing struct {
	Waited time.Duration
	Record string // the record's pattern, in words
}

func (m *Missing) Error() string {
	return fmt.Sprintf("waited %v for a record that did not come: %s", m.Waited, m.Record)
}

// Unshown is the error of a run that contradicts its story.
type Unshown struct {
	Got, Want string
}

func (u *Unshown) Error() string { return fmt.Sprintf("got %s, want %s", u.Got, u.Want) }

const (
	// patience is the longest wait for a record. A reflector that was often cut off waits up to 60 s.
	patience = 75 * time.Second
	// labPatience is the longest wait in a lab, where most stories fail and a person waits.
	labPatience = 10 * time.Second
)

// Play plays one story to its end, or until ctx is done. [sandbox.Sandbox.Play] undoes its changes and determines the
// errors, unless the story needs an Operator: that one's world is not restored. Without one the story is skipped,
// and Untold has the reason. An unknown story is a 404. In a lab a missing record is no error.
func (w *Env) Play(ctx context.Context, id string) (Seen, error) {
	story := Find(id)
	if story == nil {
		unknown := apierrors.NewNotFound(schema.GroupResource{Resource: "scenarios"}, id)
		unknown.ErrStatus.Message = "there is no story of that name"
		return Seen{}, unknown
	}
	play := w.Sandbox.Play
	if story.Alone != "" {
		if w.Operator == nil {
			now := w.Log.Last()
			untold := "The story is not played here: " + story.Alone
			return Seen{ID: id, From: now, To: now, Beats: make([]Range, len(story.Beats)), Untold: untold}, nil
		}
		play = func(ctx context.Context, _ string, play func(*sandbox.Run) error) error {
			return play(&sandbox.Run{Ctx: ctx, Writing: ctx}) // the sandbox has nothing to undo
		}
	}
	played := make(chan Seen, 1) // sent once, by the story; has room for it
	err := play(ctx, id, func(t *sandbox.Run) error {
		seen, err := newRunner(t, w, story).play()
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

// play plays the story, waits for the story's goroutines, and returns the outcome.
func (s *runner) play() (Seen, error) {
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
		seen.Untold = err.Error() // not an error: without any beat, the page plays the recording
	}
	return seen, nil
}

// playBeats runs the Prepare steps, and plays each beat: its steps, the wait for its record, and the checks afterwards.
func (s *runner) playBeats() error {
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
