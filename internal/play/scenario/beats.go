package scenario

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"listwatch/internal/observe/probe"
)

// Range is the place of a beat in the records of one run: the beat plays (From, To] and rests at To.
type Range struct {
	From     uint64 `json:"from"`
	To       uint64 `json:"to"`
	Resource string `json:"resource,omitempty"` // the resource of the record at To, or else the previous beat's
	Behind   uint64 `json:"behind"`             // the number of the record that put [Beat.Text] on the stage
	Subject  string `json:"subject,omitempty"`  // the subject of the record Behind
	Seen     string `json:"seen"`               // [Beat.Seen] with the values of the record Behind
}

// facts holds the facts about a story's earlier records that patterns need.
type facts struct {
	story *Story
	added map[string]uint64 // numbers of the watchers' registration records
	// Watchers that serve the streams of the story's client and of the page, in the order of their registration.
	lanes    []string
	last     uint64 // version of the last MODIFIED event of the story's own objects
	informer string // the watcher that last served the informer
}

func newFacts(story *Story) *facts { return &facts{story: story, added: map[string]uint64{}} }

// add updates the facts with the next record.
func (f *facts) add(r *probe.Record) {
	switch {
	case r.Point == probe.WatcherAdded:
		f.added[r.Subject] = r.Seq
	case r.Point == probe.WireOpened && r.Field(probe.FieldAgent) == informerAgent:
		f.informer = r.Subject
	case r.Point == probe.WireOpened && probe.Like("story-"+f.story.ID+"*|listwatch-page*", r.Field(probe.FieldAgent)):
		f.lanes = append(f.lanes, r.Subject)
		// A client may receive its response before the server reports WireOpened, so the records WireOpened of two
		// streams may be in either order. The registrations of their watchers are in the order of the requests.
		slices.SortStableFunc(f.lanes, func(a, b string) int {
			if f.added[a] == 0 || f.added[b] == 0 {
				return 0
			}
			return int(f.added[a]) - int(f.added[b])
		})
	case r.Point == probe.RingAppend && r.Type == "MODIFIED" && f.owns(r):
		f.last = r.RV
	}
}

// owns reports whether a record is about an object of the story, judging by the object's name.
func (f *facts) owns(r *probe.Record) bool {
	name, pod := path.Base(r.Key), f.story.Pod
	return strings.HasPrefix(name, f.story.ID+"-") || name == pod || pod != "" && strings.HasPrefix(name, pod+"-")
}

// pattern selects a record by words: points, unless any point will do, then NAME, NAME=value or !NAME=value:
//
//	FrameWritten stream=0 type=ADDED|MODIFIED n=10
//
// A record matches if it fulfills the query and all terms. n=10 selects the tenth match. Some [terms] need the story.
type pattern struct {
	probe.Query
	words string
	terms []term
	n     int // matches the n-th such record of the story; 0: the first one after the previous beat
}

type term struct {
	value string
	not   bool
	test  func(f *facts, r *probe.Record, value string) bool
}

// terms are the conditions that a query cannot express.
var terms = map[string]func(f *facts, r *probe.Record, value string) bool{
	"own": func(f *facts, r *probe.Record, _ string) bool { return f.owns(r) },
	"pod": func(f *facts, r *probe.Record, letter string) bool {
		return path.Base(r.Key) == f.story.podName(letter)
	},
	"newest":   func(f *facts, r *probe.Record, _ string) bool { return r.RV == f.last },
	"informer": func(f *facts, r *probe.Record, _ string) bool { return r.Subject == f.informer },
	"stream": func(f *facts, r *probe.Record, n string) bool {
		i, err := strconv.Atoi(n)
		return n == "any" && slices.Contains(f.lanes, r.Subject) || err == nil && i < len(f.lanes) &&
			f.lanes[i] == r.Subject
	},
	// list matches a request that lists the story's own pods.
	"list": func(f *facts, r *probe.Record, _ string) bool {
		query, err := url.ParseQuery(r.Field(probe.FieldQuery))
		return err == nil && r.Field(probe.FieldMethod) == "GET" && query.Get("labelSelector") == "story="+f.story.ID &&
			!query.Has("watch")
	},
	"queue": func(_ *facts, r *probe.Record, name string) bool { return r.Point.Info().Queue == name },
	"after": func(_ *facts, r *probe.Record, seq string) bool {
		from, err := strconv.ParseUint(seq, 10, 64)
		return err == nil && r.Seq > from
	},
}

// parsePattern parses a pattern. The first word may name points, and n=NUMBER sets n. A word of [terms], or a negated
// field of the points, becomes a term. All other words become part of the query.
func parsePattern(words []string) (p pattern, err error) {
	p.words = strings.Join(words, " ")
	for i, word := range words {
		name, value, _ := strings.Cut(strings.TrimPrefix(word, "!"), "=")
		not := strings.HasPrefix(word, "!")
		test, own := terms[name]
		switch {
		case i == 0 && !own && !strings.Contains(word, "="):
			for name := range strings.SplitSeq(word, "|") {
				point, found := probe.PointNamed(name)
				if !found {
					return p, fmt.Errorf("%q: there is no point %s", p.words, name)
				}
				p.Points = append(p.Points, point)
			}
		case name == "n":
			if p.n, err = strconv.Atoi(value); err != nil {
				return p, fmt.Errorf("%q: %w", p.words, err)
			}
		case own:
			p.terms = append(p.terms, term{value, not, test})
		default:
			if err := p.ask(name, value, not); err != nil {
				return p, fmt.Errorf("%q: %w", p.words, err)
			}
		}
	}
	return p, nil
}

// ask adds a condition to the query or, for a negated field, a term to the pattern.
func (p *pattern) ask(name, value string, not bool) (err error) {
	texts := map[string]*string{"resource": &p.Resource, "subject": &p.Subject, "type": &p.Type}
	has := func(point probe.Point) bool { return point.Info().Has(probe.Field(name)) }
	switch into := texts[name]; {
	case into != nil && !not:
		*into = value
	case name == "rv" && !not:
		p.RV, err = strconv.ParseUint(value, 10, 64)
	case !slices.ContainsFunc(p.Points, has):
		return fmt.Errorf("there is no term %s", name)
	case not:
		field := probe.Field(name)
		p.terms = append(p.terms, term{value, true, func(_ *facts, r *probe.Record, value string) bool {
			return probe.Like(value, r.Field(field))
		}})
	default:
		if p.Fields == nil {
			p.Fields = map[probe.Field]string{}
		}
		p.Fields[probe.Field(name)] = value
	}
	return err
}

func (p *pattern) matches(f *facts, r *probe.Record) bool {
	for _, t := range p.terms {
		if t.test(f, r, t.value) == t.not {
			return false
		}
	}
	return p.Matches(r)
}

// rest is the place where a beat rests: the record of its pattern or, for several patterns, the last of their records.
type rest []pattern

// UnmarshalJSON implements [json.Unmarshaler]. It accepts one pattern or a list of them.
func (m *rest) UnmarshalJSON(data []byte) error {
	if data[0] == '[' {
		return json.Unmarshal(data, (*[]pattern)(m))
	}
	*m = rest{{}}
	return json.Unmarshal(data, &(*m)[0])
}

func (p *pattern) UnmarshalText(words []byte) (err error) {
	*p, err = parsePattern(strings.Fields(string(words)))
	return err
}

func (p pattern) MarshalText() ([]byte, error) { return []byte(p.words), nil }

// String returns the patterns in words.
func (m rest) String() string {
	var all []string
	for _, p := range m {
		words := p.words
		if len(p.Points) > 0 {
			words += " (" + p.Points[0].Info().Fact + ")"
		}
		all = append(all, words)
	}
	return strings.Join(all, ", and ")
}

// in returns the record at which a beat rests, or nil if there is none yet. The beat begins after record from.
func (m rest) in(f *facts, records []probe.Record, from uint64) (last *probe.Record) {
	if len(m) == 1 {
		return m[0].in(f, records, from)
	}
	for i := range m {
		r := m[i].in(f, records, 0) // only the last of the records must be after from
		if r == nil {
			return nil
		}
		if last == nil || r.Seq > last.Seq {
			last = r
		}
	}
	if last.Seq <= from {
		return nil
	}
	return last
}

func (p *pattern) in(f *facts, records []probe.Record, from uint64) *probe.Record {
	n := 0
	for i := range records {
		r := &records[i]
		if p.n == 0 && r.Seq <= from || !p.matches(f, r) {
			continue
		}
		if n++; n >= p.n && r.Seq > from {
			return r
		}
	}
	return nil
}

// Locate finds the beats of a story in its sorted records. A missing beat has an empty range, and the error names the
// beat; the next beat then begins where the last found beat rests.
func (s *Story) Locate(records []probe.Record) (ranges []Range, err error) {
	ranges = make([]Range, len(s.Beats))
	if len(records) == 0 {
		return ranges, fmt.Errorf("%s: there are no records", s.ID)
	}
	f := newFacts(s)
	for i := range records {
		f.add(&records[i])
	}
	from, about := records[0].Seq-1, ""
	for i := range s.Beats {
		r := s.Beats[i].Rest.in(f, records, from)
		if r == nil {
			err = errors.Join(err, fmt.Errorf("%[1]s: beat %[2]d has no place in its records after record %[3]d; "+
				"if the story is new, make its recording: go test ./internal/observe/takes "+
				"-run TestMakeStories/%[1]s -update", s.ID, i+1, from))
			continue
		}
		about = cmp.Or(r.Resource, about)
		behind := r
		for n := range records {
			b := &records[n]
			if because := s.Beats[i].Because; because != nil && b.Seq <= r.Seq && because.matches(f, b) {
				behind = b
			}
		}
		ranges[i] = Range{
			From: from, To: r.Seq, Resource: about, Behind: behind.Seq, Subject: behind.Subject,
			Seen: os.Expand(s.Beats[i].Seen, func(name string) string { return said(behind, name) }),
		}
		from = r.Seq
	}
	return ranges, err
}

// said returns a value of a record by its name: rv, n, type, subject or a field.
func said(r *probe.Record, name string) string {
	switch name {
	case "rv":
		return strconv.FormatUint(r.RV, 10)
	case "n":
		return strconv.Itoa(r.Args[0])
	case "type":
		return r.Type
	case "subject":
		return r.Subject
	}
	return r.Field(probe.Field(name))
}

// Shows returns nil if the records of a run meet every claim of the moral, or an [Unshown] about the first unmet claim.
func (s *Story) Shows(records []probe.Record) error {
	f := newFacts(s)
	for i := range records {
		f.add(&records[i])
	}
	for _, claim := range s.Moral {
		n := 0
		for i := range records {
			if claim.matches(f, &records[i]) {
				n++
			}
		}
		if n < claim.least || n > claim.most {
			return &Unshown{fmt.Sprintf("%d %s", n, claim.pattern.words), claim.words}
		}
	}
	return nil
}

// claim requires a number of records in a run. "0 WatcherForced !stream=0" requires none, "10" ten, "1+" at least one.
type claim struct {
	pattern
	words       string
	least, most int
}

func (c *claim) UnmarshalText(words []byte) (err error) {
	c.words = string(words)
	number, rest, _ := strings.Cut(c.words, " ")
	digits, more := strings.CutSuffix(number, "+")
	if c.least, err = strconv.Atoi(digits); err != nil {
		return fmt.Errorf("%q: %w", c.words, err)
	}
	if c.most = c.least; more {
		c.most = math.MaxInt
	}
	return c.pattern.UnmarshalText([]byte(rest))
}

func (c claim) MarshalText() ([]byte, error) { return []byte(c.words), nil }
