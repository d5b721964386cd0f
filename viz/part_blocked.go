package viz

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"listwatch/internal/fold"
	"listwatch/internal/probe"
)

// downstream says into which queue whoever takes from a queue puts what it took; "" is the end of the way.
var downstream = map[string]string{
	"etcd3-incoming": "etcd3-result", "etcd3-result": "incoming", "incoming": "input", "input": "result", "result": "",
	"fifo": "add", "add": "pending", "pending": "next", "next": "", "workqueue": "",
}

// link is one queue in a chain of waiting.
type link struct {
	Queue    string
	Subject  string
	Station  probe.Station // where the queue is drawn
	Len, Cap int64
	Senders  []string // goroutines
	Takers   []string
	Last     fold.Moment // what its subject did last
}

// Full reports whether a sender has to wait.
func (l *link) Full() bool { return l.Cap > 0 && l.Len >= l.Cap }

// chain is who waits for whom, from the part that was asked about to the one that everybody waits for.
type chain struct {
	Links []link
	Says  string
}

func (u *UI) partBlocked(p *part) (templ.Component, error) {
	var chains []chain
	for _, start := range p.links() {
		chains = append(chains, p.follow(start))
	}
	return partBlockedLeaf(p, chains), nil
}

// links returns the queues of the part.
func (p *part) links() []link {
	var list []link
	for _, info := range p.points() {
		if info.Queue == "" || slices.ContainsFunc(list, func(l link) bool { return l.Queue == info.Queue }) {
			continue
		}
		list = append(list, p.queues(info.Queue, p.Subject)...)
	}
	return list
}

// queues returns the queues of a name, of one subject or of all, the fullest first.
func (p *part) queues(name, subject string) []link {
	var list []link
	for _, id := range slices.Sorted(maps.Keys(p.picture.Subjects)) {
		q := p.picture.Subjects[id].Queues[name]
		if q == nil || subject != "" && id != subject {
			continue
		}
		l := link{Queue: name, Subject: id, Len: q.Len, Cap: q.Cap, Last: p.picture.Subjects[id].Last}
		l.Station, l.Senders, l.Takers = ends(name)
		list = append(list, l)
	}
	slices.SortStableFunc(list, func(a, b link) int { return int(b.Len - a.Len) })
	return list
}

// ends returns where a queue is, and who is at its two ends.
func ends(queue string) (at probe.Station, senders, takers []string) {
	var in, out []*probe.Info
	for _, point := range probe.Points() {
		info := point.Info()
		switch {
		case info.Queue != queue:
		case info.Op == probe.Send || info.Op == probe.Push:
			at = info.Station
			in = append(in, info)
		default:
			out = append(out, info)
		}
	}
	return at, lanesOf(in), lanesOf(out)
}

// lanesOf returns the goroutines that report any of the points, each once.
func lanesOf(points []*probe.Info) []string {
	var names []string
	for _, info := range points {
		for _, name := range strings.Fields(info.Lane) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// follow goes downstream from a queue as long as the next one is full, too: whoever takes from a full queue and could put
// what it takes somewhere is the one that everybody waits for.
func (p *part) follow(start link) chain {
	c := chain{Links: []link{start}}
	last := start
	for last.Full() {
		subject := last.Subject
		if last.Queue == "incoming" || last.Queue == "etcd3-result" {
			subject = "" // the next one belongs to somebody else
		}
		next := p.queues(downstream[last.Queue], subject)
		if len(next) == 0 || !next[0].Full() {
			break
		}
		last = next[0]
		c.Links = append(c.Links, last)
	}
	c.Says = c.words()
	return c
}

// words say what the chain means.
func (c *chain) words() string {
	first, last := &c.Links[0], &c.Links[len(c.Links)-1]
	name := queueTexts[first.Queue].Title
	taker := orSomebody(last.Takers)
	switch {
	case first.Full():
		return fmt.Sprintf("%s is full, %d of %d: %s has to wait. Everybody waits for %s to take from %s.",
			name, first.Len, first.Cap, orSomebody(first.Senders), taker, queueTexts[last.Queue].Title)
	case first.Len > 0:
		return fmt.Sprintf("Nobody waits to put something into %s. What stands in it waits for %s.", name, taker)
	}
	return fmt.Sprintf("%s is empty: %s waits for something to come from %s.", name, taker, orSomebody(first.Senders))
}

func orSomebody(names []string) string {
	if len(names) == 0 {
		return "whoever is there"
	}
	return strings.Join(names, " or ")
}
