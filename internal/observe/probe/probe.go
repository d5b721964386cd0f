// Package probe carries moments out of the stations.
//
// A station reports a moment with one line, on its own line, directly after the fact:
//
//	w.endIndex++
//	w.probe.At(probe.RingAppend, event.Key, event.ResourceVersion)
//
// What a moment means is declared once, in points.go: at which station it happens, what is true then, and the sentence
// the page says for it. The constants and their docs are generated from that, so an editor shows it at every report.
// Each [Point] is emitted from exactly one place, so a point is a source line.
//
// # Concurrency
//
// A [Probe] is immutable and may be used from any goroutine. A nil *Probe is legal everywhere and does nothing.
// The order of the [Log] is the order in which At was called, which for two goroutines that meet at a channel is
// not always the order in which they met: a receive may be written down before its send. Moments declared as Locked
// are reported under the lock that orders them, so their order is the order of the facts.
package probe

import (
	"strings"
	"unicode/utf8"
)

// Probe is what a station holds to report moments: a way into one [Log], with the resource and the subject on
// whose behalf it speaks already filled in.
type Probe struct {
	log      *Log
	resource string
	subject  string
	lane     *lane // of which the subject is one; nil: every moment is written
}

// New returns a probe that writes into log and speaks for no one in particular. A nil log gives a nil Probe: off.
func New(log *Log) *Probe {
	if log == nil {
		return nil
	}
	return &Probe{log: log}
}

// Resource returns a probe whose records belong to a resource, such as "pods".
func (p *Probe) Resource(name string) *Probe {
	if p == nil {
		return nil
	}
	return &Probe{log: p.log, resource: name, subject: p.subject}
}

// Subject returns a probe that speaks for one of several of a kind: watcher "w3", listener "l1", cacher "cacher".
func (p *Probe) Subject(id string) *Probe {
	if p == nil {
		return nil
	}
	return &Probe{log: p.log, resource: p.resource, subject: id}
}

// ID returns the subject this probe speaks for, or "" when off.
func (p *Probe) ID() string {
	if p == nil {
		return ""
	}
	return p.subject
}

// At reports a moment about the object key at resource version rv. Either may be zero. What args mean is declared
// with the point, in [Info.Args]; at most four are kept. At never allocates, and never blocks unless the world is
// held, see [Gate].
func (p *Probe) At(point Point, key string, rv uint64, args ...int) {
	if p != nil { // so small that it is inlined: off, a report costs this comparison
		p.report(point, "", "", key, rv, args)
	}
}

// Event is At for a moment about a typed event: ADDED, MODIFIED, DELETED, BOOKMARK, ERROR or, inside a FIFO, a
// delta's type.
func (p *Probe) Event(point Point, typ, key string, rv uint64, args ...int) {
	if p != nil {
		p.report(point, typ, "", key, rv, args)
	}
}

// Text is At for a moment that needs words: an error, a reason, a duration. The text may hold anything a client sent;
// whatever shows it escapes it. The log keeps [MaxText] runes of it, under the name that the point declares.
func (p *Probe) Text(point Point, text, key string, rv uint64, args ...int) {
	if p != nil {
		p.report(point, "", TextsOf(point, text), key, rv, args)
	}
}

// Texts is Text for a moment with several texts, in the order in which the point declares their names.
func (p *Probe) Texts(point Point, texts []string, key string, rv uint64, args ...int) {
	if p != nil {
		p.report(point, "", TextsOf(point, texts...), key, rv, args)
	}
}

// What the log keeps of strings that a client chose. A longer one is copied up to there, so that the log does not hold
// on to the rest of it: a request line may have a megabyte, and the log has room for 65,536 records.
const (
	// MaxText is how many runes of a text are kept, which are all that is ever shown.
	MaxText = 240
	// MaxKey is how many bytes of a key are kept. No object that can be stored has a longer one, so two objects never
	// become one by it: a namespace has at most 63 bytes, a name 253.
	MaxKey = 512
)

// Bound cuts a text that a client chose, as the log and the picture keep it: valid UTF-8, and at most MaxText runes.
func Bound(text string) string {
	if len(text) <= MaxText && utf8.ValidString(text) {
		return text
	}
	runes := []rune(text[:min(len(text), MaxText*utf8.UTFMax)]) // an invalid byte is one U+FFFD, here as in JSON
	return string(runes[:min(len(runes), MaxText)])
}

func cutKey(key string) string {
	if len(key) <= MaxKey {
		return key
	}
	return strings.Clone(key[:MaxKey])
}

func (p *Probe) report(point Point, typ string, texts Texts, key string, rv uint64, args []int) {
	if p.lane != nil {
		if p.lane.keeps(point, typ) {
			return
		}
		if routines[point].count == 0 {
			p.lane.notes(point, texts)
		}
	}
	seq := p.log.put(p.log.now(), point, p.resource, p.subject, typ, texts, key, rv, args)
	if p.log.gate.closed.Load() { // while the world runs, a load is all it costs
		r := Record{Seq: seq, Point: point, Resource: p.resource, Subject: p.subject, Type: typ, Key: cutKey(key),
			RV: rv, Texts: texts}
		copy(r.Args[:], args)
		p.log.gate.wait(r)
	}
	if p.lane != nil && !p.lane.isLoud() && points[point].Op == Open {
		p.lane.hush() // to say so
	}
}

// Probed is implemented by values that others report on: a WatchServer knows its watcher only as a
// watch.Interface, and must still say whose result channel it just received from.
type Probed interface {
	// Probe returns the probe of the value, which may be nil.
	Probe() *Probe
}

// Of returns the probe of v, or nil if v has none.
func Of(v any) *Probe {
	if p, ok := v.(Probed); ok {
		return p.Probe()
	}
	return nil
}
