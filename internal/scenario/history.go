package scenario

import (
	"fmt"
	"strings"
	"time"

	"listwatch/internal/probe"
	"listwatch/internal/sandbox"
)

const informerAgent = "listwatch-informer"

var ringWrap = Story{
	ID:      "ring-wrap",
	Title:   "The ring wraps: 410, and the whole state again",
	Symptom: "“too old resource version: 2781 (3056)” in the log of a controller that did nothing wrong.",
	Watch:   "The ring of four events: its start moves past the version that the informer will ask for. Then the reflector.",
	Chapter: "04-watchcache",
	Thread:  "kubernetes/kubernetes#55230",
	Beats:   beatsOfRingWrap,
	play:    playRingWrap,
}

func playRingWrap(s *stagehand) (string, error) {
	s.turn("ring.capacity", "pods", "4")
	s.step("made the ring 4 events small")
	expired, synced := s.outrun(func() { s.churn(s.name(0), 8) })
	s.key = expired.Seq
	return fmt.Sprintf("While the informer was away, the ring lost the changes after the last version it had seen. When it came back, the server answered 410: %q. It fetched the whole state again, objects: %d, at %d. It has missed no state, only the changes in between.",
		short(expired.Text, 90), synced.Args[0], synced.RV), nil
}

// outrun cuts the informer off, lets absent happen, and lets it come back to a ring that no longer remembers. It returns
// the answer 410 and the moment at which the informer had the whole state again.
func (s *stagehand) outrun(absent func()) (expired, synced probe.Record) {
	s.turn("line.cut", informerAgent, "true")
	s.step("cut the connection of the informer")
	cut := s.await("the end of its watch", of(probe.ReflectorWatchEnded, "informer"))
	absent()
	s.pause(eye)
	s.step("changed pods while it was away")
	s.turn("line.cut", informerAgent, "false")
	s.step("restored the connection")
	expired = s.awaitAfter(cut.Seq, "the answer 410", isExpired)
	s.step("410: its version is gone")
	synced = s.awaitAfter(expired.Seq, "the whole state", func(r *probe.Record) bool {
		return r.Subject == "informer" && (r.Point == probe.ReflectorSynced || r.Point == probe.ReflectorListed)
	})
	s.step("it has the whole state again, at %d", synced.RV)
	return expired, synced
}

// isExpired reports whether the informer learns that its version is gone.
func isExpired(r *probe.Record) bool {
	return r.Point == probe.ReflectorWatchEnded && r.Subject == "informer" && strings.Contains(r.Text, "too old")
}

func short(text string, n int) string {
	if len(text) > n {
		return text[:n] + "…"
	}
	return text
}

var bookmarks = Story{
	ID:      "bookmarks",
	Title:   "Bookmarks keep a quiet watch alive",
	Symptom: "“My watch selects almost nothing, and each time it is opened again I get 410 and a full list.”",
	Watch:   "Two watchers that select nothing, while the ring turns. One asked for bookmarks. Both streams end after six seconds.",
	Chapter: "06-cacher",
	Thread:  "kubernetes/enhancements#956",
	Beats:   beatsOfBookmarks,
	play:    playBookmarks,
}

func playBookmarks(s *stagehand) (string, error) {
	s.turn("ring.capacity", "pods", "16")
	start := s.churn(s.name(0), 2)
	quiet := sandbox.WatcherOptions{Resource: "pods", LabelSelector: label + "=nothing", ResourceVersion: fmt.Sprint(start), TimeoutSeconds: 6}
	without := ok(s.AddWatcher(quiet))
	quiet.Bookmarks = true
	with := ok(s.AddWatcher(quiet))
	s.step("opened two watches that select nothing, at version %d; the second asks for bookmarks", start)
	marked := s.lane(s.from, with)
	s.churn(s.name(0), 20)
	s.step("changed a pod 20 times: the ring of 16 has passed %d", start)
	return s.afterBookmark(start, marked, with, without)
}

func (s *stagehand) afterBookmark(start uint64, marked, with, without string) (string, error) {
	bookmark := s.await("a bookmark", func(r *probe.Record) bool {
		return r.Point == probe.FrameWritten && r.Subject == marked && r.Type == "BOOKMARK" && r.RV > start
	})
	s.step("%s is sent a bookmark of %d, two seconds before its time is over", marked, bookmark.RV)
	plain := s.lane(s.from, without)
	again := map[string]string{}
	for agent, first := range map[string]string{with: marked, without: plain} {
		closed := s.await("the end of "+first, of(probe.WireClosed, first))
		again[agent] = s.lane(closed.Seq, agent)
	}
	s.step("both streams have ended, and both clients came back")
	gone := s.await("410 for the one without", func(r *probe.Record) bool {
		return r.Point == probe.FrameWritten && r.Subject == again[without] && r.Type == "ERROR"
	})
	s.key = gone.Seq
	s.pause(eye)
	if s.count(func(r *probe.Record) bool {
		return r.Point == probe.FrameWritten && r.Subject == again[with] && r.Type == "ERROR"
	}) > 0 {
		return "", fmt.Errorf("the watch with bookmarks was told to begin again")
	}
	return fmt.Sprintf("Neither received an event. The one without bookmarks came back with %d, which the ring had lost: 410. The other one came back with its bookmark of %d, and resumed.", start, bookmark.RV), nil
}

var compaction = Story{
	ID:      "compaction",
	Title:   "etcd forgets",
	Symptom: "“etcdserver: mvcc: required revision has been compacted”",
	Watch:   "The etcd3 watchChan: the watch of a resource that has no cache goes straight to etcd, and etcd has forgotten.",
	Chapter: "02-etcd3",
	Beats:   beatsOfCompaction,
	play:    playCompaction,
}

func playCompaction(s *stagehand) (string, error) {
	old := s.churn(s.name(0), 3)
	s.churn(s.name(0), 3)
	s.turn("etcd.compact", "", "")
	s.step("compacted etcd: everything before the newest revision is forgotten")
	s.pause(eye)
	began := s.Log.Last()
	request := s.client.Get().Resource("events").Param("watch", "true").Param("resourceVersion", fmt.Sprint(old))
	if stream, err := request.Watch(s.ctx); err == nil { // otherwise it was refused at once
		defer stream.Stop()
	}
	s.step("watched events, which have no cache, from %d", old)
	failed := s.awaitAfter(began, "etcd's refusal", point(probe.WatchChanError))
	s.key = failed.Seq
	pods := s.open(fmt.Sprint(old))
	defer pods.Stop()
	event := s.next(pods)
	if event.Type == "ERROR" {
		return "", fmt.Errorf("the watch of pods from %d, which the ring still holds: %s %v", old, event.Type, event.Object)
	}
	s.step("watched pods, which have one, from %d: %s", old, event.Type)
	return fmt.Sprintf("etcd refused a watch of events from %d: %q. A watch of pods from the same version resumed as if nothing had happened: its ring in the cache still holds the changes. Compaction hurts clients that read from etcd, and clients that come back later than the ring reaches.",
		old, short(failed.Text, 90)), nil
}

var missedDeletion = Story{
	ID:      "missed-deletion",
	Title:   "The deletion that no watch saw",
	Symptom: "panic: interface conversion: interface {} is cache.DeletedFinalStateUnknown, not *v1.Pod",
	Watch:   "The indexer and the handlers. A pod is deleted while the informer is away, and the ring loses the deletion before the informer is back.",
	Chapter: "10-deltafifo",
	Thread:  "grafana/grafana-app-sdk#1352",
	Beats:   beatsOfMissedDeletion,
	play:    playMissedDeletion,
}

func playMissedDeletion(s *stagehand) (string, error) {
	const witness = "witness"
	s.turn("handler.add", witness, "")
	s.turn("ring.capacity", "pods", "4")
	victim := s.name(0)
	rv := s.create(victim, nowhere, nil)
	heard := func(typ string) func(r *probe.Record) bool {
		return func(r *probe.Record) bool {
			return r.Point == probe.HandlerCalled && r.Subject == witness && r.Type == typ && about(r, victim)
		}
	}
	s.await("the news of it", heard("ADDED"))
	s.step("created %s at %d; the handler knows it", victim, rv)
	s.outrun(func() { s.deleteUnseen(victim) })
	called := s.await("the handler's deletion", heard("DELETED"))
	s.key = called.Seq
	told := s.count(func(r *probe.Record) bool {
		return r.Point == probe.ReflectorReceived && r.Subject == "informer" && r.Type == "DELETED" && about(r, victim)
	})
	if told > 0 {
		return "", fmt.Errorf("the informer received the deletion of %s", victim)
	}
	s.step("the handler is called with a DeletedFinalStateUnknown")
	return fmt.Sprintf("No DELETED event reached the client: the ring had lost it. The pod was missing from the new state, so the informer inferred its deletion and gave OnDelete a DeletedFinalStateUnknown with the last known state, that of version %d. The client cannot know the pod's state at its deletion.", rv), nil
}

// deleteUnseen deletes a pod and lets the ring forget it.
func (s *stagehand) deleteUnseen(name string) {
	must(s.delete(name))
	s.pause(100 * time.Millisecond)
	s.churn(s.name(1), 6)
}
