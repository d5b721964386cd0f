package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	deltafifo "listwatch/chapters/10-deltafifo"
	"listwatch/internal/probe"
)

// Beat is one step in the telling of a story: what is said before it, where to look, and where it comes to rest. It begins where
// the beat before it rests.
type Beat struct {
	Say      string          `json:"say"`
	Look     []probe.Station `json:"look"` // in the order of the path; all others are dimmed
	Question *Question       `json:"question,omitempty"`
	rest     moment
}

// Question is asked before a beat; what the beat shows answers it.
type Question struct {
	Ask     string   `json:"ask"`
	Answers []string `json:"answers"`       // two to four
	Right   int      `json:"right"`         // index of the answer that the beat shows to be true
	Why     string   `json:"why,omitempty"` // why that is so, said when it has been shown
}

// Range is the place of a beat in the records of one run: it plays (From, To] and rests at To.
type Range struct {
	From     uint64 `json:"from"`
	To       uint64 `json:"to"`
	Resource string `json:"resource,omitempty"` // of the record at which it rests
}

// moment is where a beat rests: at the n-th record of the story that matches, or, if n is 0, at the first one after the beat
// before it. A moment with parts is the last of theirs; n is 0 then.
type moment struct {
	n     int
	match condition
	parts []moment
}

// facts are what the moments of a story need to know of its records.
type facts struct {
	id    string
	lanes []string // watchers that serve the story's own streams, in the order in which these were opened
	last  uint64   // version of the last change of the story's own pods
	// informer is the watcher that served the informer last.
	informer string
}

func factsOf(id string, records []probe.Record) *facts {
	f := &facts{id: id}
	added := map[string]int{} // where the watcher was registered
	for i := range records {
		switch r := &records[i]; {
		case r.Point == probe.WatcherAdded:
			added[r.Subject] = i
		case r.Point == probe.WireOpened && (strings.HasPrefix(r.Text, "story-"+id+" ") || strings.HasPrefix(r.Text, "listwatch-page")):
			f.lanes = append(f.lanes, r.Subject)
		case r.Point == probe.WireOpened && strings.HasPrefix(r.Text, informerAgent+" "):
			f.informer = r.Subject
		case r.Point == probe.RingAppend && r.Type == "MODIFIED" && f.owns(r):
			f.last = r.RV
		}
	}
	// A client has its answer before the server says WireOpened: two streams that were opened one after the other may say
	// so in either order. Their watchers were registered before the answers.
	slices.SortStableFunc(f.lanes, func(a, b string) int {
		i, known := added[a]
		j, both := added[b]
		if !known || !both {
			return 0
		}
		return i - j
	})
	return f
}

// owns reports whether a record is about a pod of the story.
func (f *facts) owns(r *probe.Record) bool { return strings.Contains(r.Key, "/"+f.id+"-") }

// lane returns the watcher of the story's n-th stream, or what no watcher is called.
func (f *facts) lane(n int) string {
	if n >= len(f.lanes) {
		return "none"
	}
	return f.lanes[n]
}

// Locate finds the beats of a story in its records, oldest first. A beat that is not in them has no range, and the error says so;
// the next one begins where the last one rests that was found.
func (s *Story) Locate(records []probe.Record) (ranges []Range, err error) {
	if len(records) == 0 {
		return nil, fmt.Errorf("%s: there are no records", s.ID)
	}
	f := factsOf(s.ID, records)
	from := records[0].Seq - 1
	ranges = make([]Range, len(s.Beats))
	for i := range s.Beats {
		r := s.Beats[i].rest.in(f, records, from)
		if r == nil {
			err = errors.Join(err, fmt.Errorf("%s: beat %d has no place in its records after record %d", s.ID, i+1, from))
			continue
		}
		ranges[i] = Range{From: from, To: r.Seq, Resource: r.Resource}
		from = r.Seq
	}
	return ranges, err
}

// in returns the record at which a beat rests that begins after record from; nil if there is none.
func (m moment) in(f *facts, records []probe.Record, from uint64) (last *probe.Record) {
	for _, part := range m.parts {
		r := part.in(f, records, 0) // some of them may have been before
		if r == nil {
			return nil
		}
		if last == nil || r.Seq > last.Seq {
			last = r
		}
	}
	if last != nil && last.Seq <= from {
		return nil
	}
	n := 0
	for i := range records {
		r := &records[i]
		if m.match == nil || m.n == 0 && r.Seq <= from || !m.match(f, r) {
			continue
		}
		if n++; n >= m.n && r.Seq > from {
			return r
		}
	}
	return last
}

// at is the first record of a point that every condition accepts, after the beat before it.
func at(p probe.Point, conditions ...condition) moment { return nth(0, p, conditions...) }

// nth is the n-th such record of the story.
func nth(n int, p probe.Point, conditions ...condition) moment {
	return moment{n: n, match: both(append([]condition{func(_ *facts, r *probe.Record) bool { return r.Point == p }}, conditions...)...)}
}

// all is when every one of the moments has been.
func all(moments ...moment) moment { return moment{parts: moments} }

type condition = func(f *facts, r *probe.Record) bool

func both(conditions ...condition) condition {
	return func(f *facts, r *probe.Record) bool {
		for _, holds := range conditions {
			if !holds(f, r) {
				return false
			}
		}
		return true
	}
}

func own(f *facts, r *probe.Record) bool { return f.owns(r) }

func newest(f *facts, r *probe.Record) bool { return r.RV == f.last }

// pod is the story's pod of that letter.
func pod(letter string) condition {
	return func(f *facts, r *probe.Record) bool { return about(r, f.id+"-"+letter) }
}

func by(subject string) condition {
	return func(_ *facts, r *probe.Record) bool { return r.Subject == subject }
}

// stream is the story's n-th, counted from 0.
func stream(n int) condition {
	return func(f *facts, r *probe.Record) bool { return r.Subject == f.lane(n) }
}

func ownStream(f *facts, r *probe.Record) bool { return slices.Contains(f.lanes, r.Subject) }

func typed(types ...string) condition {
	return func(_ *facts, r *probe.Record) bool {
		return slices.Contains(types, r.Type)
	}
}

func says(text string) condition {
	return func(_ *facts, r *probe.Record) bool { return strings.Contains(r.Text, text) }
}

// ownList is a request for the story's own pods.
func ownList(f *facts, r *probe.Record) bool {
	return strings.HasPrefix(r.Text, "GET ") && strings.Contains(r.Text, "story%3D"+f.id) && !strings.Contains(r.Text, "watch=")
}

func ask(text string, right int, answers ...string) *Question {
	return &Question{Ask: text, Answers: answers, Right: right}
}

func (q *Question) because(why string) *Question {
	q.Why = why
	return q
}

func look(stations ...probe.Station) []probe.Station { return stations }

var beatsOfLosesNothing = []Beat{
	{Say: "A client creates three pods and lists them. The list carries one version. It contains every write up to that version.",
		Look: look(probe.HTTP, probe.Store), rest: at(probe.RequestAnswered, ownList)},
	{Say: "Now pods change five times. The client has its list and no watch.",
		Look: look(probe.Etcd, probe.Ring), rest: nth(8, probe.RingAppend, own)},
	{Say: "The client opens its watch at the version of its list, which lies five changes back.",
		Question: ask("What does the server send on the watch first?", 1, "Only what changes from now on", "The five changes, from the ring", "All three pods again").
			because("The version of its list names a place in the ring. The watch begins right after it."),
		Look: look(probe.Ring, probe.Watcher), rest: at(probe.WatcherInterval, stream(0))},
	{Say: "Five more changes come. The dispatcher hands them to the watcher.",
		Look: look(probe.Dispatch, probe.Watcher, probe.Wire), rest: nth(10, probe.FrameWritten, stream(0), typed("MODIFIED"))},
}

var beatsOfThreeVersions = []Beat{
	{Say: "A client creates a pod with turn=first, and changes it to turn=second. The pod now has two versions.",
		Look: look(probe.Etcd, probe.Ring, probe.Store), rest: nth(2, probe.RingAppend, pod("a"))},
	{Say: "The client lists without a resourceVersion. The cache first makes sure that it has caught up with etcd.",
		Question: ask("Which turn does the list without a version show?", 1, "first", "second", "Either of the two").
			because("A read without a version is consistent: the server asks etcd for its newest revision, and waits until the cache has it."),
		Look: look(probe.HTTP, probe.Etcd, probe.Store), rest: nth(1, probe.RequestAnswered, ownList)},
	{Say: "The client lists with resourceVersion=0. The cache answers at once with what it has, and does not ask etcd.",
		Look: look(probe.HTTP, probe.Store), rest: nth(2, probe.RequestAnswered, ownList)},
	{Say: "The client lists at exactly the first version. The pod has changed since.",
		Question: ask("Can the server still answer with that state?", 0, "Yes: it shows turn=first", "No: it answers 410", "It shows turn=second").
			because("The store keeps a snapshot for each version that the ring still holds."),
		Look: look(probe.HTTP, probe.Store), rest: nth(3, probe.RequestAnswered, ownList)},
}

var beatsOfRingWrap = []Beat{
	{Say: "The ring of pods keeps the newest events, for clients that come back. The story shrinks it to four events.",
		Look: look(probe.Ring), rest: at(probe.RingResize)},
	{Say: "The story cuts the informer's connection. The informer remembers the last version that it has seen.",
		Look: look(probe.Wire, probe.Reflector), rest: at(probe.ReflectorWatchEnded, by("informer"))},
	{Say: "While the informer is away, one pod changes eight times. The ring has four places.",
		Look: look(probe.Etcd, probe.Ring), rest: nth(8, probe.RingAppend, own)},
	{Say: "The connection works again. The informer asks to resume after the last version that it has seen.",
		Question: ask("What does the server answer?", 2, "The eight changes", "The last four changes", "410: that version is too old").
			because("Eight changes went through a ring of four places. It no longer holds the one that follows the informer's version."),
		Look: look(probe.Ring, probe.Reflector), rest: moment{match: func(_ *facts, r *probe.Record) bool { return isExpired(r) }}},
	{Say: "The reflector does the only thing it can: it fetches the whole state again.",
		Look: look(probe.Store, probe.Watcher, probe.Wire, probe.Reflector), rest: moment{match: func(_ *facts, r *probe.Record) bool {
			return r.Subject == "informer" && (r.Point == probe.ReflectorSynced || r.Point == probe.ReflectorListed)
		}}},
}

var beatsOfSlowWatcher = []Beat{
	{Say: "A client opens a watch of all pods. Then it stops reading.",
		Look: look(probe.Watcher, probe.Wire), rest: at(probe.KnobTurned, says("line.stall"))},
	{Say: "Pods change 200 times a second. The watcher's result channel has ten places, and its client takes nothing.",
		Look: look(probe.Dispatch, probe.Watcher, probe.Wire), rest: at(probe.ResultBlocked, stream(0))},
	{Say: "The watcher's goroutine waits at its full result channel. So it takes nothing from its input channel either.",
		Look: look(probe.Dispatch, probe.Watcher), rest: at(probe.InputBlocked, stream(0))},
	{Say: "Input and result are full. The dispatcher holds one more event for this watcher, and every other watcher is waiting for the next one.",
		Question: ask("What does the dispatcher do?", 2, "It waits until the client reads", "It drops this one event", "It waits a little, and closes the watcher").
			because("All full watchers share a budget of at most 100 ms. The dispatcher closes those that are still full then, and serves the others."),
		Look: look(probe.Dispatch, probe.Watcher), rest: at(probe.WatcherForced, stream(0))},
	{Say: "The client reads again and finds the end of its stream. It opens a new watch at the last version that it has read.",
		Look: look(probe.Ring, probe.Watcher, probe.Wire), rest: at(probe.WireOpened, stream(1))},
}

var beatsOfTriggerIndex = []Beat{
	{Say: "A thousand watchers are registered, each for the pods of one node, as a thousand kubelets would do.",
		Look: look(probe.Watcher), rest: at(probe.WatcherAdded, says(node(nNodes-1)))},
	{Say: "One pod moves from node 17 to node 423. The change goes through etcd into the ring.",
		Look: look(probe.Etcd, probe.Ring), rest: at(probe.RingAppend, own, typed("MODIFIED"))},
	{Say: "The dispatcher takes the change and looks up which watchers want it.",
		Question: ask("To how many of the thousand watchers does the dispatcher hand the change?", 1, "One", "Two", "A thousand").
			because("The pod leaves node 17 and comes to node 423. An index by node name finds these two watchers; the dispatcher does not look at the other 998."),
		Look: look(probe.Incoming, probe.Dispatch), rest: at(probe.DispatchStarted, own, typed("MODIFIED"))},
	{Say: "For node 17 the pod is gone, for node 423 it is new. The same change reaches one as DELETED and the other as ADDED.",
		Look: look(probe.Dispatch, probe.Watcher), rest: nth(2, probe.ResultSent, newest, typed("ADDED", "DELETED"))},
}

var beatsOfSelector = []Beat{
	{Say: "A pod has the label tier=green. One client watches tier=blue, another one the pods of the node story-node. The pod matches neither.",
		Look: look(probe.HTTP, probe.Watcher), rest: at(probe.WatcherAdded, stream(1))},
	{Say: "The label becomes tier=blue. The ring stores a MODIFIED; the pod is new to the watch of tier=blue.",
		Look: look(probe.Ring, probe.Watcher), rest: nth(1, probe.ResultSent, stream(0), typed("ADDED"))},
	{Say: "The label becomes tier=green again. The pod lives on.",
		Question: ask("What does the watch of tier=blue receive?", 2, "Nothing", "MODIFIED", "DELETED").
			because("The pod matched before the change and does not match after it. For this watch it is gone."),
		Look: look(probe.Ring, probe.Watcher), rest: at(probe.ResultSent, stream(0), typed("DELETED"))},
	{Say: "The label becomes tier=blue again.",
		Look: look(probe.Ring, probe.Watcher), rest: nth(2, probe.ResultSent, stream(0), typed("ADDED"))},
	{Say: "Now the pod moves to story-node. The ring stores one more MODIFIED; the watch of that node has not seen this pod before.",
		Look: look(probe.Ring, probe.Watcher), rest: at(probe.ResultSent, stream(1), typed("ADDED"))},
}

var beatsOfBookmarks = []Beat{
	{Say: "Two clients watch pods that do not exist, from the same version. Only the second one asks for bookmarks.",
		Look: look(probe.Watcher, probe.Wire), rest: all(at(probe.WatcherAdded, stream(0)), at(probe.WatcherAdded, stream(1)))},
	{Say: "A third client changes a pod twenty times. The ring has sixteen places, so it loses the changes after the version of the two clients.",
		Look: look(probe.Ring), rest: nth(21, probe.RingAppend, own)},
	{Say: "Shortly before the streams time out, the dispatcher sends a bookmark to the watcher that asked for them: a version, and no object.",
		Look: look(probe.Dispatch, probe.Watcher, probe.Wire), rest: at(probe.FrameWritten, ownStream, typed("BOOKMARK"))},
	{Say: "Both streams end, as every watch does. Both clients come back, each with the last version that it knows.",
		Question: ask("Which client does the server refuse with 410?", 0, "The one without bookmarks", "The one with bookmarks", "Both").
			because("The bookmark gave the other client a newer version, one that the ring still holds."),
		Look: look(probe.Ring, probe.Watcher, probe.Wire),
		rest: all(at(probe.WireOpened, stream(2)), at(probe.WireOpened, stream(3)), at(probe.FrameWritten, typed("ERROR")))},
}

var beatsOfCompaction = []Beat{
	{Say: "A pod changes. etcd keeps each version, and the cache of pods keeps the events in its ring.",
		Look: look(probe.Etcd, probe.Ring), rest: nth(6, probe.TxnCommitted, own)},
	{Say: "etcd is compacted: it forgets every version but the newest.",
		Look: look(probe.Etcd), rest: at(probe.KnobTurned, says("etcd.compact"))},
	{Say: "A client watches events from an old version. Events have no cache here, so the watch goes to etcd.",
		Question: ask("What does etcd answer?", 1, "It sends all changes since then", "It refuses: that revision has been compacted").
			because("etcd has forgotten the revisions before the compaction. It reports an error rather than leave a silent gap."),
		Look: look(probe.HTTP, probe.Etcd, probe.Etcd3), rest: at(probe.WatchChanError)},
	{Say: "The same client watches pods from the same old version.",
		Question: ask("And the watch of pods?", 0, "It resumes from the ring", "The server refuses it, too").
			because("The ring is the cache's own memory. A compaction of etcd removes no event from it."),
		Look: look(probe.Ring, probe.Watcher, probe.Wire), rest: at(probe.FrameWritten, own, typed("ADDED", "MODIFIED"),
			ownStream)},
}

var beatsOfMissedDeletion = []Beat{
	{Say: "A handler, the witness, is registered with the informer. A client creates a pod, and the informer calls the witness.",
		Look: look(probe.Indexer, probe.Listener, probe.Handler), rest: at(probe.HandlerCalled, by("witness"), typed("ADDED"), pod("a"))},
	{Say: "The story cuts the informer's connection.",
		Look: look(probe.Wire, probe.Reflector), rest: at(probe.ReflectorWatchEnded, by("informer"))},
	{Say: "A client deletes the pod. Six more changes push the deletion out of the ring, which has four places.",
		Look: look(probe.Etcd, probe.Ring), rest: nth(6, probe.RingAppend, pod("b"))},
	{Say: "The connection works again. The informer asks for a version that the ring has lost, and the server answers 410.",
		Look: look(probe.Ring, probe.Reflector), rest: moment{match: func(_ *facts, r *probe.Record) bool { return isExpired(r) }}},
	{Say: "The informer fetches the whole state again. The pod is not in it.",
		Question: ask("What does the witness hear of the pod?", 1, "Nothing: it keeps the pod forever", "OnDelete, with the last state that the informer knew", "OnDelete, with the state at the deletion").
			because("The informer compares the new state with its indexer. A pod that is missing from the new state has been deleted; its last known state is all that the informer has."),
		Look: look(probe.Reflector, probe.FIFO, probe.Indexer, probe.Handler), rest: at(probe.HandlerCalled, by("witness"), typed("DELETED"), pod("a"))},
}

var beatsOfResync = []Beat{
	{Say: "One more informer gets two pods from the server and tells its handler of both. Its resync period is one second.",
		Look: look(probe.Reflector, probe.FIFO, probe.Indexer, probe.Handler), rest: nth(2, probe.HandlerReturned, by(again))},
	{Say: "A second has passed, and the reflector's timer fires.",
		Question: ask("Where do the objects of a resync come from?", 2, "From a new list", "From the server's ring", "From the informer's own indexer").
			because("A resync puts what the indexer holds into the queue again. The client sends no request."),
		Look: look(probe.Reflector, probe.FIFO, probe.Indexer), rest: nth(1, probe.FIFOAdded, by(resyncing), typed(string(deltafifo.SyncAll)))},
	{Say: "The informer calls the handler with two updates. Old and new object have the same version.",
		Look: look(probe.Indexer, probe.Listener, probe.Handler), rest: nth(4, probe.HandlerReturned, by(again))},
	{Say: "Two more resyncs follow. Watch the reflector: it sends no request.",
		Look: look(probe.Wire, probe.Reflector, probe.Handler), rest: nth(8, probe.HandlerReturned, by(again))},
}

var beatsOfSlowHandler = []Beat{
	{Say: "A second handler, called slow, is registered next to the observer. Each of its calls takes a second.",
		Look: look(probe.Processor, probe.Listener, probe.Handler), rest: at(probe.KnobTurned, says("handler.delay"))},
	{Say: "A pod changes. The slow handler is called, and the next notification for it waits.",
		Look: look(probe.Listener, probe.Handler), rest: at(probe.PendingPushed, by("slow"))},
	{Say: "The pod changes twenty times in a row.",
		Question: ask("What waits for the slow handler?", 2, "The observer, too", "The informer's queue and the stream", "Only its own notifications, in its pending ring").
			because("Each listener has its own pending ring, which grows without a bound. So the informer and the other handlers do not wait."),
		Look: look(probe.FIFO, probe.Processor, probe.Listener, probe.Handler),
		rest: all(at(probe.HandlerReturned, by("observer"), newest), at(probe.PendingPushed, by("slow"), newest))},
	{Say: "A second later the slow handler has finished a call and takes the next one. The rest waits in memory, without a bound.",
		Look: look(probe.Listener, probe.Handler), rest: at(probe.HandlerReturned, by("slow"))},
}

var beatsOfTwoQueues = []Beat{
	{Say: "Two more reflectors watch the same two pods. One puts what it receives into a RealFIFO, the other one into a DeltaFIFO. The story does not empty the queues yet.",
		Look: look(probe.Reflector, probe.FIFO), rest: all(at(probe.ReflectorSynced, by(realQueue)), at(probe.ReflectorSynced, by(deltaQueue)))},
	{Say: "The pods a and b change in turn, four times each. Both queues take all changes.",
		Look: look(probe.Reflector, probe.FIFO), rest: all(at(probe.FIFOAdded, by(realQueue), newest), at(probe.FIFOAdded, by(deltaQueue), newest))},
	{Say: "The story empties the RealFIFO.",
		Question: ask("In which order do the changes come out of the RealFIFO?", 0, "a1 b1 a2 b2 a3 b3 a4 b4", "a1 a2 a3 a4 b1 b2 b3 b4", "Only a4 and b4").
			because("A RealFIFO keeps every change in the order of arrival, whatever its key."),
		Look: look(probe.FIFO), rest: at(probe.FIFOPopped, by(realQueue), newest)},
	{Say: "The story empties the DeltaFIFO, which keeps one entry for each key.",
		Question: ask("And out of the DeltaFIFO?", 1, "a1 b1 a2 b2 a3 b3 a4 b4", "a1 a2 a3 a4 b1 b2 b3 b4", "Only a4 and b4").
			because("A DeltaFIFO collects the changes of one key in one entry, and hands them out together."),
		Look: look(probe.FIFO), rest: at(probe.FIFOPopped, by(deltaQueue), newest)},
}
