package scenario

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	listwatch "listwatch/chapters/09-listwatch"
	deltafifo "listwatch/chapters/10-deltafifo"
	processor "listwatch/chapters/12-processor"
	informer "listwatch/chapters/13-informer"
	"listwatch/internal/probe"
)

var resync = Story{
	ID:      "resync",
	Title:   "A resync asks no server",
	Symptom: "“We resync every ten minutes, so the next list makes up for a missed event. Does it?”",
	Watch:   "One more informer on the same pods. Its handler gets everything again each second, and it sends no request.",
	Chapter: "13-informer",
	Beats:   beatsOfResync,
	play:    playResync,
}

const (
	resyncing    = "informer-resync"
	again        = "again" // its handler
	resyncPeriod = time.Second
	nResyncs     = 3
)

func playResync(s *stagehand) (string, error) {
	var last uint64
	for n := range 2 {
		rv := s.create(s.name(n), nowhere, nil)
		last = rv
	}
	s.inform(resyncing, again, resyncPeriod, s.own)
	synced := s.await("its first state", func(r *probe.Record) bool {
		return r.Point == probe.HandlerReturned && r.Subject == again && r.RV == last
	})
	s.step("one more informer has the two pods, and its handler knows them")
	shown := synced
	for n := range nResyncs {
		shown = s.awaitAfter(shown.Seq, "a resync", isResync)
		if n == 0 {
			s.key = shown.Seq
		}
	}
	told := s.awaitAfter(shown.Seq, "what the last resync shows", func(r *probe.Record) bool {
		return r.Point == probe.HandlerReturned && r.Subject == again && r.RV == last
	})
	s.step("%d resyncs later, %s after the first state", nResyncs, (told.Time - synced.Time).Round(100*time.Millisecond))
	updates, requests := s.sinceSynced(synced.Seq)
	if requests > 0 {
		return "", fmt.Errorf("it asked the server %d times after its first state", requests)
	}
	return fmt.Sprintf("The informer called the handler with %d updates, each from a version to the same version. The reflector's timer put %s, “all there is”, into the queue %d times, and the informer read the objects from its own indexer. It asked the server for nothing. So a resync cannot show an event that was never received; only a list can, and that comes after a 410, not after a period.",
		updates, shown.Type, nResyncs), nil
}

func isResync(r *probe.Record) bool {
	return r.Point == probe.FIFOAdded && r.Subject == resyncing && r.Type == string(deltafifo.SyncAll)
}

// inform runs one more informer with one handler for the length of the story.
func (s *stagehand) inform(name, handler string, resync time.Duration, which func(*metav1.ListOptions)) {
	p := s.Probe.Resource("pods").Subject(name)
	i := informer.NewSharedIndexInformer(informer.Config{
		Name: name, ExampleObject: &corev1.Pod{}, Clock: s.Clock, Probe: p, UseWatchList: true, ResyncPeriod: resync,
		ListerWatcher: listwatch.NewListWatch(s.Pipeline.Client.NewClient("listwatch-"+name, p, nil), "pods", namespace, which),
	})
	ok(i.AddEventHandlerWithOptions(processor.ResourceEventHandlerFuncs{}, informer.HandlerOptions{Name: handler}))
	s.group.Go(s.ctx, "informer", i.Run)
}

// sinceSynced counts what the handler was told since a record, and what the reflector asked for.
func (s *stagehand) sinceSynced(seq uint64) (updates, requests int) {
	for i := range s.seen {
		r := &s.seen[i]
		if r.Seq <= seq {
			continue
		}
		if r.Point == probe.HandlerReturned && r.Subject == again {
			updates++
		}
		if r.Subject == resyncing && (r.Point == probe.ReflectorListed || r.Point == probe.ReflectorWatching) {
			requests++
		}
	}
	return updates, requests
}
