package inspector

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
)

// link is one queue in a chain of waiting, and what the page says of it.
type link struct {
	fold.Link
	Name    string        // "input of w3"
	Station probe.Station // where it is looked into
	Place   string        // the data-queue there, "" if it has none
	Senders []string      // goroutines
	Takers  []string
	Sends   string // who cannot put something in, and for how long
	Takes   string // why nothing is taken
}

// full reports whether a sender has to wait.
func (l *link) full() bool { return l.Sender != nil || l.Cap > 0 && l.Len >= l.Cap }

// chain is who waits for whom, from the queue that was asked about to the one whose receiver can end it.
type chain struct {
	Links []link
	Full  bool // a goroutine waits, or would
	Says  string
}

func (i *Inspector) partBlocked(_ context.Context, p *part) (templ.Component, error) {
	var full []fold.Link
	for _, id := range slices.Sorted(maps.Keys(p.picture.Subjects)) {
		if p.Subject != "" && id != p.Subject {
			continue
		}
		for _, queue := range p.queues() {
			if q := p.picture.Subjects[id].Queues[queue]; q != nil {
				full = append(full, fold.Link{Queue: queue, Subject: id, Len: q.Len})
			}
		}
	}
	slices.SortStableFunc(full, func(a, b fold.Link) int { return cmp.Compare(b.Len, a.Len) })
	var chains []chain
	for _, each := range full[:min(len(full), maxChains)] {
		chains = append(chains, p.follow(each.Queue, each.Subject))
	}
	return partBlockedLeaf(p, chains), nil
}

// maxChains is how many queues the leaf follows, the longest first: each is looked for among all waits.
const maxChains = 64

// queues returns the names of the queues of the part.
func (p *part) queues() []string {
	var list []string
	for _, info := range p.points() {
		if info.Queue != "" && !slices.Contains(list, info.Queue) {
			list = append(list, info.Queue)
		}
	}
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

// follow puts the chain of waiting that begins at a queue into words.
func (p *part) follow(queue, subject string) chain {
	var c chain
	for _, each := range p.picture.Why(queue, subject) {
		c.Links = append(c.Links, p.linkOf(each))
	}
	first, last := &c.Links[0], &c.Links[len(c.Links)-1]
	c.Full = first.full()
	switch {
	case c.Full:
		c.Says = fmt.Sprintf("%s is full, %d of %d. %s%s", first.Name, first.Len, first.Cap, first.Sends, p.end(last))
	case first.Len > 0:
		c.Says = fmt.Sprintf("No goroutine waits to put something into %s. What it holds waits: %s", first.Name,
			p.end(last))
	default:
		c.Says = fmt.Sprintf("%s is empty: %s waits for something to come from %s.", first.Name, orAny(first.Takers),
			orAny(first.Senders))
	}
	return c
}

func (p *part) linkOf(each fold.Link) link {
	l := link{Link: each, Place: each.Queue}
	switch each.Queue {
	case "stream": // from the StreamWatcher to the reflector
		l.Name, l.Place, l.Station = "the hand-over to the reflector of "+each.Subject, "", probe.Reflector
		l.Senders, l.Takers = []string{"StreamWatcher.receive"}, []string{"reflector.Run"}
	case "wire":
		l.Name, l.Place, l.Station = "the stream to "+each.Subject, "", probe.Wire
		l.Senders, l.Takers = []string{"handlers.WatchServer"}, []string{"StreamWatcher.receive"}
	default:
		l.Name = places().Queues[each.Queue].Title + " of " + each.Subject
		l.Station, l.Senders, l.Takers = ends(each.Queue)
	}
	if each.Sender != nil {
		l.Sends = fmt.Sprintf("%s has waited there for %s. ", orAny(strings.Fields(each.Sender.Lane)),
			p.since(each.Sender))
	}
	if each.Taker != nil {
		l.Takes = fmt.Sprintf("%[1]s takes nothing: for %[3]s it has waited for %[2]s", orAny(l.Takers),
			waitTexts[each.Taker.Kind], p.since(each.Taker))
	}
	return l
}

// waitTexts say what a goroutine waits for, to be followed by how long.
var waitTexts = map[string]string{
	string(probe.ForRoom): "room at the next one", string(probe.ForTaker): "the next one to take it",
	string(probe.ForLock):    "a lock",
	string(probe.ForVersion): "a newer version", string(probe.ForClient): "its client to read",
	string(probe.ForReturn): "its own code to return",
	string(probe.ForWork):   "something to do",
}

// end says which goroutine can end the waiting at the last queue of a chain.
func (p *part) end(last *link) string {
	who := orAny(last.Takers)
	if last.Taker == nil {
		return fmt.Sprintf("All of them wait for %s to take from %s.", who, last.Name)
	}
	subject, spent := last.Taker.Subject, p.since(last.Taker)
	switch probe.Wait(last.Taker.Kind) {
	case probe.ForClient:
		return fmt.Sprintf("All of them wait for the client of %s: %s has been writing to it for %s.", subject, who,
			spent)
	case probe.ForReturn:
		return fmt.Sprintf("All of them wait for the code of %s, which has been at %s for %s.", subject,
			probe.ObjectKey(last.Taker.Key), spent)
	case probe.ForLock:
		return fmt.Sprintf("All of them wait for a lock that %s has wanted for %s.", who, spent)
	}
	return fmt.Sprintf("All of them wait for %s.", who)
}

// since says how long a goroutine has waited, on the log's clock.
func (p *part) since(w *fold.Wait) string {
	d := time.Duration(p.t - w.T)
	if d < 10*time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%d s", int(d.Seconds()))
}

func orAny(names []string) string {
	if len(names) == 0 {
		return "any goroutine"
	}
	return strings.Join(names, " or ")
}
