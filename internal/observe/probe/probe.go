// Package probe records moments: facts that become true at a station on an event's path.
//
// A station reports a moment in one statement, on its own line, directly after the fact:
//
//	w.endIndex++
//	w.probe.At(probe.RingAppend, event.Key, event.ResourceVersion)
//
// points.go declares each moment once: its station, the fact that is true then, and the sentence that the page shows.
// The constants and their docs are generated from that table, so an editor shows the fact at every report. Exactly one
// line of the program reports each [Point]. Package fold and viz/log/fold.js apply the records to the picture.
//
// # Concurrency
//
// A [Probe] is immutable and may be used from any goroutine. A nil *Probe is legal everywhere and does nothing. The
// order of the [Log] is the order of the calls of At. Two goroutines that meet at a channel may call At in either
// order: the log may have a receive before its send. Moments declared as Locked are reported under the lock that orders
// them, so their order is the order of the facts.
package probe

import (
	"context"
	"strings"
	"unicode/utf8"
)

// Probe reports a station's moments to one [Log]. It fills in their resource and their subject.
type Probe struct {
	log      *Log
	resource string
	subject  string
	lane     *lane // the subject's lane; nil: the log has every moment
}

// New returns a probe that writes into log, without a resource or a subject. If log is nil, the probe is nil, too.
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

// Subject returns a probe for a single subject, such as watcher "w3", listener "l1" or cacher "cacher".
func (p *Probe) Subject(id string) *Probe {
	if p == nil {
		return nil
	}
	return &Probe{log: p.log, resource: p.resource, subject: id}
}

// ID returns the probe's subject, or "" if the probe is nil.
func (p *Probe) ID() string {
	if p == nil {
		return ""
	}
	return p.subject
}

// At reports a moment about the object key at resource version rv. Both may be zero. [Info.Args] of the point names the
// args; the log keeps four. At usually allocates nothing, and blocks only while a [Gate] holds its goroutine.
func (p *Probe) At(point Point, key string, rv uint64, args ...int) {
	if p != nil { // At is small enough to be inlined, so a nil probe costs only this comparison
		p.report(point, "", "", key, rv, args)
	}
}

// Event is At for a typed event: ADDED, MODIFIED, DELETED, BOOKMARK, ERROR or, in a FIFO or a store, a delta's type.
func (p *Probe) Event(point Point, typ, key string, rv uint64, args ...int) {
	if p != nil {
		p.report(point, typ, "", key, rv, args)
	}
}

// Text is At for a moment that needs words: an error, a reason, a duration. The text may hold anything that a client
// sent, so the code that shows it has to escape it. The log keeps [MaxText] runes, under the point's name for the text.
func (p *Probe) Text(point Point, text, key string, rv uint64, args ...int) {
	if p != nil {
		p.report(point, "", TextsOf(point, text), key, rv, args)
	}
}

// Texts is Text for a moment with several texts, in the order in which the point declares their names. It returns the
// record's number, or 0 if the probe is nil or the log leaves the moment out.
func (p *Probe) Texts(point Point, texts []string, key string, rv uint64, args ...int) uint64 {
	if p == nil {
		return 0
	}
	return p.report(point, "", TextsOf(point, texts...), key, rv, args)
}

// The limits on strings that a client chose. The log copies a longer string up to its limit, so that the rest can be
// freed: a request line may have a megabyte, and the log holds 65,536 records.
const (
	// MaxText is the maximum number of runes of a text in the log, except the text of a [CrowdLookedAt].
	MaxText = 240
	// MaxKey is the maximum number of bytes of a key in the log. A namespace has at most 63 bytes and a name 253, so no
	// stored object has a longer key, and cutting never makes two objects one.
	MaxKey = 512
)

// Bound reduces a client's text to the form that the log and the picture keep: valid UTF-8, and at most MaxText runes.
func Bound(text string) string {
	if len(text) <= MaxText && utf8.ValidString(text) {
		return text
	}
	runes := []rune(text[:min(len(text), MaxText*utf8.UTFMax)]) // each invalid byte becomes one U+FFFD, as in JSON
	return string(runes[:min(len(runes), MaxText)])
}

func cutKey(key string) string {
	if len(key) <= MaxKey {
		return key
	}
	return strings.Clone(key[:MaxKey])
}

// report writes a record, waits at the gate, and returns the record's number, or 0 if the log leaves the moment out.
func (p *Probe) report(point Point, typ string, texts Texts, key string, rv uint64, args []int) uint64 {
	if p.lane != nil && p.lane.drops(point, typ) {
		return 0
	}
	seq := p.put(point, typ, texts, key, rv, args)
	if p.log.gate.closed.Load() { // an open gate costs only this load
		r := Record{Seq: seq, Point: point, Resource: p.resource, Subject: p.subject, Type: typ, Key: cutKey(key),
			RV: rv, Texts: texts}
		copy(r.Args[:], args)
		p.log.gate.wait(r)
	}
	return seq
}

func (p *Probe) put(point Point, typ string, texts Texts, key string, rv uint64, args []int) uint64 {
	if p.lane != nil && !point.Info().Routine {
		p.log.lanes.mu.Lock()
		defer p.log.lanes.mu.Unlock()
		p.lane.notesLocked(point, texts)
	}
	return p.log.put(p.log.now(), point, p.resource, p.subject, typ, texts, key, rv, args)
}

// Probed is a value about which others report: a WatchServer has its watcher only as a watch.Interface, but must name
// the watcher in its records.
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

type requestKey struct{}

// WithRequest returns a context for the work of a request; seq is the number of its RequestReceived.
func WithRequest(ctx context.Context, seq uint64) context.Context {
	return context.WithValue(ctx, requestKey{}, int(seq))
}

// RequestOf returns the number of the RequestReceived of the request to which ctx belongs, or 0 if there is none.
func RequestOf(ctx context.Context) int {
	seq, _ := ctx.Value(requestKey{}).(int)
	return seq
}
