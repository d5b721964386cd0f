package scenario

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"

	listwatch "listwatch/chapters/09-listwatch"
	deltafifo "listwatch/chapters/10-deltafifo"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
	"listwatch/internal/play/sandbox"
)

const (
	namespace     = "default"
	nowhere       = "nowhere" // the node of most pods; no scheduler and no kubelet acts on them
	informerAgent = "listwatch-informer"
	tick          = 5 * time.Millisecond // the time between two reads of the log
	maxRead       = 1 << 18              // maximum number of records of one story
)

// runner is the state of a story's run. Only the story's own goroutine uses the fields that change.
type runner struct {
	// Set by newRunner, never changed.
	*Env
	*sandbox.Run
	story  *Story
	client *listwatch.RESTClient

	ctx   context.Context // for the story's clients; cancelled at the end of the story
	group routine.Group
	ends  []func() // called at the end of the story, to undo changes that the sandbox does not undo

	from  uint64         // number of the last record before the story's first
	seen  []probe.Record // the story's records that have been read
	facts *facts         // facts about the records in seen

	vars    map[string]string        // results of steps: "$last", "${list.rv}"
	times   map[string]time.Duration // times of awaited records, by name
	changes map[string]int           // number of the story's writes, by pod
	streams map[string]watch.Interface
	queues  map[string]deltafifo.Queue
	later   map[string]chan func() error // concurrent requests by name; each sends a function that saves its answer
}

func newRunner(t *sandbox.Run, w *Env, story *Story) *runner {
	return &runner{
		Env: w, Run: t, story: story, client: w.Pipeline.Client.NewClient("story-"+story.ID, nil),
		from: w.Log.Last(), facts: newFacts(story),
		vars: map[string]string{}, times: map[string]time.Duration{}, changes: map[string]int{},
		streams: map[string]watch.Interface{}, queues: map[string]deltafifo.Queue{},
		later: map[string]chan func() error{},
	}
}

// doAll runs the steps one after the other, up to the first error. It does not wait for those marked later.
func (s *runner) doAll(steps []step) error {
	for i := range steps {
		each, words, err := &steps[i], make([]string, len(steps[i].args)), error(nil)
		for n, word := range each.args {
			expanded, wrong := s.expand(word)
			words[n], err = expanded, cmp.Or(err, wrong)
		}
		switch {
		case err != nil:
		case each.later:
			s.begin(each, newArgs(each.name, words))
		default:
			err = s.keep(each.name)(each.do(s, newArgs(each.name, words)))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", each.line, err)
		}
	}
	return nil
}

// begin runs a step on a goroutine of its own, and keeps the channel for its answer. The step must be a send, because
// send uses no field that changes.
func (s *runner) begin(each *step, a *args) {
	done := make(chan func() error, 1) // sent once, by the goroutine; has room for it
	s.later[each.name] = done
	s.group.Go(s.ctx, "story.request", func(context.Context) {
		got, err := each.do(s, a)
		done <- func() error { return s.keep(each.name)(got, err) }
	})
}

// answer is a step's result: a value and named fields.
type answer struct {
	value  string
	fields map[string]string
}

// keep returns a function that saves a step's answer under a name, and passes on the step's error.
func (s *runner) keep(name string) func(answer, error) error {
	return func(a answer, err error) error {
		s.vars[name] = a.value
		for field, value := range a.fields {
			s.vars[name+"."+field] = value
		}
		return err
	}
}

// note saves a record's time and fields under a name.
func (s *runner) note(name string, r probe.Record) {
	s.times[name] = r.Time
	for field, value := range map[string]any{"rv": r.RV, "seq": r.Seq, "n": r.Args[0], "type": r.Type,
		"subject": r.Subject} {
		s.vars[name+"."+field] = fmt.Sprint(value)
	}
	for field, text := range r.Texts.All() {
		s.vars[name+"."+string(field)] = fmt.Sprintf("%.90q", text)
	}
}

// expand replaces the variables in a text: results of steps (it waits for a concurrent one), fields of awaited records,
// and the time between two records (${committed..done}).
func (s *runner) expand(text string) (expanded string, err error) {
	expanded = os.Expand(text, func(name string) string {
		kept, _, _ := strings.Cut(name, ".")
		if done := s.later[kept]; done != nil {
			delete(s.later, kept)
			err = cmp.Or(err, (<-done)())
		}
		if value, ok := s.vars[name]; ok {
			return value
		}
		if from, to, ok := strings.Cut(name, ".."); ok {
			return rounded(s.times[to] - s.times[from])
		}
		err = cmp.Or(err, fmt.Errorf("there is no variable %s", name)) // err is set if the request of that name failed
		return ""
	})
	return expanded, err
}

// rounded rounds a duration to tenths of a second or, up to one second, to 10 µs.
func rounded(d time.Duration) string {
	if d > time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}

// await waits until m.in finds a record, and returns the record, or [Missing] if it does not come in time.
func (s *runner) await(m rest, after uint64) (probe.Record, error) {
	patience := patience
	if s.Lab {
		patience = labPatience
	}
	began := s.Clock.Now()
	for known := -1; ; {
		if err := s.read(); err != nil {
			return probe.Record{}, err
		}
		if len(s.seen) != known {
			known = len(s.seen)
			if r := m.in(s.facts, s.seen, after); r != nil {
				return *r, nil
			}
		}
		if s.Clock.Since(began) > patience {
			return probe.Record{}, &Missing{patience, m.String()}
		}
		if err := routine.Sleep(s.ctx, s.Clock, tick); err != nil {
			return probe.Record{}, fmt.Errorf("wait for %s: %w", m, err)
		}
	}
}

// read appends the log's new records to seen. It fails if the log has dropped some, or if the story has too many.
func (s *runner) read() error {
	var ok bool
	n := len(s.seen)
	if s.seen, ok = s.Log.Since(s.seen, s.from+uint64(n), 1<<16); !ok {
		return errors.New("the log has moved on: there is too much traffic to see anything")
	}
	if len(s.seen) > maxRead {
		return errors.New("too much has happened to see anything")
	}
	for i := range s.seen[n:] {
		s.facts.add(&s.seen[n+i])
	}
	return nil
}

//go:embed stories/*.yaml
var files embed.FS

// All lists the stories, in the order of their files, which is the best order for viewers.
var All []Story

// init reads the stories after the initialization of verbs and terms, which decoding uses. A file's name is a number,
// which orders the stories, and the story's id. init panics if a file is wrong: the files are part of the program.
func init() {
	names, err := fs.Glob(files, "stories/*.yaml")
	for _, name := range names {
		text, readErr := files.ReadFile(name)
		var story Story
		if err = cmp.Or(err, readErr, yaml.UnmarshalStrict(text, &story)); err != nil {
			panic(fmt.Sprintf("scenario: %s: %v", name, err))
		}
		_, story.ID, _ = strings.Cut(strings.TrimSuffix(name, ".yaml"), "-")
		All = append(All, story)
	}
}

// step is one line of a story: a verb with its words, and the variable for its result.
//
//	last = change a 8
//	turn line.cut listwatch-informer true
//	expect $told DELETED
//	fresh = later send GET pods
type step struct {
	line, name string // name "": no variable
	later      bool   // runs concurrently; expand waits for the result
	do         verb
	args       []string
}

func (s *step) UnmarshalText(line []byte) error {
	s.line = string(line)
	words := strings.Fields(s.line)
	if len(words) > 2 && words[1] == "=" {
		s.name, words = words[0], words[2:]
	}
	if s.later = words[0] == "later"; s.later {
		words = words[1:]
	}
	if s.do = verbs[words[0]]; s.do == nil {
		return fmt.Errorf("%q: there is no verb %s", line, words[0])
	}
	s.args = words[1:]
	return nil
}

func (s step) MarshalText() ([]byte, error) { return []byte(s.line), nil }
