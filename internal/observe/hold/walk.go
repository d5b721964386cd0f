package hold

import (
	"context"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

const (
	walkRounds = 400                   // goroutines that are let go on in one walk: a queue is full of other changes
	walkTick   = 10 * time.Millisecond // between two looks for what came of it
	walkLooks  = 20                    // … and so many of them, if another goroutine is in the way
	walkGrace  = 4                     // … after that one has gone on: what is walked may come to a point by itself
	walkWait   = 400                   // … if no other goroutine is in the way
	walkRecent = 4000                  // records in which what is walked is looked for
)

// walk is one walk.
type walk struct {
	log         *probe.Log
	probe.Query // what is walked: an object or a version, of a resource
}

// Walk moves an object or a version to its next point at which a goroutine is held, of which the log has a record. If
// it waits in a queue, the goroutine that comes to take it is let go on, and nothing else. ends says how the walk has
// ended if not at a point. The error is ctx's.
func (w *World) Walk(ctx context.Context, log *probe.Log, what probe.Query) (ends string, err error) {
	return (&walk{log, what}).run(ctx, w)
}

func (w *walk) run(ctx context.Context, world *World) (ends string, err error) {
	began, status := w.log.Last(), world.Status()
	before, next := w.newest(&status), probe.Query{Key: w.Key, RV: w.RV}
	var front *probe.Waiting // whom next lets go on; nil: what is walked
	for range walkRounds {
		world.Step(next)
		moved := 0
		for look := 0; moved < walkGrace && (look < walkLooks || look < walkWait && w.inFront(&status) == nil); look++ {
			if err := routine.Sleep(ctx, clock.RealClock{}, walkTick); err != nil {
				return "", err
			}
			status = world.Status()
			if w.ran(began) {
				return "its handler has run", nil
			}
			if w.newest(&status) > before || !status.Held && len(status.Gates) == 0 {
				return "", nil
			}
			stands := func(each probe.Waiting) bool { return each.Seq == front.Seq }
			if front != nil && !slices.ContainsFunc(status.Waiting, stands) {
				moved++
			}
		}
		if front = w.inFront(&status); front == nil {
			break
		}
		next = probe.Query{Station: front.Station, Resource: front.Resource, Subject: front.Subject,
			Key: front.Key, RV: front.RV}
	}
	return "it is held nowhere: it has come to its end, or waits for a timer", nil
}

// has reports whether an object or a version is what is walked.
func (w *walk) has(key string, rv uint64) bool {
	return w.Key != "" && probe.ObjectKey(key) == probe.ObjectKey(w.Key) || w.RV != 0 && rv == w.RV
}

// newest returns the newest record at which a goroutine is held with what is walked, 0 if there is none.
func (w *walk) newest(status *Status) (seq uint64) {
	for _, each := range status.Waiting {
		if w.has(each.Key, each.RV) {
			seq = max(seq, each.Seq)
		}
	}
	return seq
}

// ran reports whether a handler was called with it after a record.
func (w *walk) ran(began uint64) bool {
	for r := range w.log.Between(began, w.log.Last()) {
		if r.Point == probe.HandlerCalled && w.has(r.Key, r.RV) {
			return true
		}
	}
	return false
}

// inFront returns the held goroutine that comes next on the path after what is walked, nil if none does.
func (w *walk) inFront(status *Status) (first *probe.Waiting) {
	last := w.log.Last()
	var at probe.Point // where it was last
	for r := range w.log.Between(max(last, walkRecent)-walkRecent, last) {
		if w.has(r.Key, r.RV) {
			at = onPath(r.Point, r.Subject)
		}
	}
	var least probe.Point
	for i := range status.Waiting {
		each := &status.Waiting[i]
		order := onPath(each.Point, each.Subject)
		here := each.Resource == "" || each.Resource == w.Resource
		if here && !w.has(each.Key, each.RV) && order >= at && (first == nil || order < least) {
			first, least = each, order
		}
	}
	return first
}

// onPath returns the point in the order of the path: the cache's own reflector comes before the ring.
func onPath(point probe.Point, subject string) probe.Point {
	if subject == "cacher" && point == probe.ReflectorReceived {
		return probe.RingAppend
	}
	return point
}
