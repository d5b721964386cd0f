package scenario

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	deltafifo "listwatch/chapters/10-deltafifo"
	"listwatch/internal/probe"
)

const (
	nInitial  = 12
	listing   = "informer-list"
	streaming = "informer-stream"
)

var watchList = Story{
	ID:      "watch-list",
	Title:   "Watch-list against list: memory, and the first event",
	Symptom: "“When a controller starts, the memory of the API server jumps, and the controller sees its first object only when it has all of them.”",
	Watch:   "Two more reflectors get the same twelve pods: one by a list, one as a stream. Compare what crosses the wire.",
	Chapter: "03-reflector",
	Thread:  "kubernetes/enhancements#3157",
	Beats: []Beat{
		{Say: "There are twelve pods, in etcd and in the cache.",
			Look: look(probe.Etcd, probe.Store), rest: nth(nInitial, probe.StoreUpdate, own)},
		{Say: "The first reflector lists. The server puts all twelve into one answer. The client reads it to its end before it hands on the first pod.",
			Look: look(probe.HTTP, probe.Store, probe.Reflector), rest: at(probe.ReflectorListed, by(listing))},
		{Say: "The second reflector asks for a stream: a watch with sendInitialEvents=true. The server writes each pod as a frame of its own.",
			Question: ask("How much has the client read when it has its first pod?", 1, "All twelve frames", "One frame", "All twelve frames and a bookmark").
				because("Each frame holds one object, and the client decodes each frame as soon as it has read it."),
			Look: look(probe.Store, probe.Watcher, probe.Wire), rest: at(probe.FrameDecoded, by(streaming), typed("ADDED"))},
		{Say: "More frames follow. The stream has no length, and changes may come between the frames.",
			Question: ask("How does the reflector know that it has the whole state?", 2, "It counts the pods", "The server ends the stream", "A bookmark with an annotation says so").
				because("The bookmark has the annotation k8s.io/initial-events-end, and the version of the whole state."),
			Look: look(probe.Watcher, probe.Wire, probe.Reflector), rest: at(probe.ReflectorSynced, by(streaming))},
		{Say: "The first reflector now opens a watch from the version of its list. The second one keeps its stream. A change of a pod reaches both.",
			Look: look(probe.Ring, probe.Watcher, probe.Wire, probe.Reflector),
			rest: all(at(probe.ReflectorReceived, by(listing), newest), at(probe.ReflectorReceived, by(streaming), newest))},
	},
	play: playWatchList,
}

func playWatchList(s *stagehand) (string, error) {
	for n := range nInitial {
		s.create(s.name(n), nowhere, nil)
	}
	whole := ok(s.client.Get().Namespace(namespace).Resource("pods").VersionedParams(&metav1.ListOptions{LabelSelector: label + "=" + s.id}).Do(s.ctx).Raw())
	s.step("created %d pods; a list of them has %d bytes", nInitial, len(whole))
	s.reflect(listing, "listwatch-"+listing, realFIFO(s, listing), false)
	s.await("its list", of(probe.ReflectorListed, listing))
	s.await("its watch", of(probe.ReflectorWatching, listing))
	s.step("the first reflector has listed, and watches")
	s.reflect(streaming, "story-"+s.id, realFIFO(s, streaming), true)
	synced := s.await("the whole state by the stream", of(probe.ReflectorSynced, streaming))
	lane := s.lane(s.from, "story-"+s.id)
	s.key = synced.Seq
	frames, largest := 0, 0
	for i := range s.seen {
		if r := &s.seen[i]; r.Point == probe.FrameWritten && r.Subject == lane && r.Seq <= synced.Seq {
			frames, largest = frames+1, max(largest, r.Args[0])
		}
	}
	s.step("the second reflector has the whole state, in %d frames", frames)
	last := s.relabel(s.name(0), "turn", "last")
	for _, name := range []string{listing, streaming} {
		s.await("the change at "+name, func(r *probe.Record) bool {
			return r.Point == probe.ReflectorReceived && r.Subject == name && r.RV == last
		})
	}
	s.step("both are told of the next change, %d", last)
	if frames != nInitial+1 || synced.Args[0] != nInitial {
		return "", fmt.Errorf("%d frames brought %d pods, want %d pods and a bookmark", frames, synced.Args[0], nInitial)
	}
	return fmt.Sprintf("The list of %d pods is one answer of %d bytes: the client holds all of it, as bytes and as objects, before it has a single pod. The stream brought the same in %d frames of at most %d bytes, the last one a bookmark; the client had its first pod after the first frame. With a list, the memory for decoding grows with the list; with a stream it does not.",
		nInitial, len(whole), frames, largest), nil
}

// realFIFO returns a queue from which nothing is taken.
func realFIFO(s *stagehand, name string) deltafifo.Queue {
	return deltafifo.NewRealFIFO(deltafifo.RealFIFOOptions{
		Name: name, Probe: s.Probe.Resource("pods").Subject(name), AtomicEvents: true, UnlockWhileProcessing: true,
	})
}
