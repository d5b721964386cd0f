package book

import (
	"fmt"
	"strings"

	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/recording"
	"listwatch/internal/observe/takes"
	"listwatch/viz/stage"
)

// told is a recording and moments of it, in order. A moment is named by its point, by "Point:TYPE" for an event of that
// type, or by "Point^" for the record with the highest first arg, often a length. "@" adds the subject if the
// stage draws one of several. [indexOf] finds each after the previous moment. A star marks the representative moment.
type told struct{ take, moments string }

// figures has the figure of each chapter. tries has the first tries, recorded from the broken sources of labs.
var (
	figures = map[int]told{
		1: {"life", "TxnCommitted RingAppend StoreUpdate *InputSent FrameWritten IndexerUpdated@informer"},
		2: {"life", "TxnCommitted Etcd3IncomingSent *Etcd3IncomingReceived Etcd3ResultSent TxnConflict"},
		3: {"start", "ReflectorWatching ReflectorReceived *ReflectorSynced"},
		4: {"ring", "RingAppend StoreUpdate *RingAppend^ FrameWritten:ERROR"},
		5: {"story-selector", "InputSent WatcherInterval *InputReceived WatcherFiltered ResultSent"},
		6: {"slow", "WatcherAdded IncomingSent DispatchStarted *DispatchBlocked WatcherForced DispatchFinished " +
			"IncomingReceived"},
		7: {"life", "RequestReceived TxnCommitted *RequestAnswered RingAppend InputSent"},
		8: {"life", "RequestAnswered ResultReceived *FrameWritten WireFlushed RequestReceived"},
		9: {"life", "FrameDecoded@informer FrameDecoded:MODIFIED@informer *FrameDecoded:DELETED@informer " +
			"StreamBlocked:DELETED@informer"},
		10: {"story-two-queues", "FIFOAdded FIFOPopped FIFOWaited FIFOAdded:Replaced FIFOAdded:Updated " +
			"FIFOPopped:Updated *FIFOAdded^ FIFOPopped:Replaced"},
		11: {"life", "IndexerUpdated@informer *IndexerUpdated:MODIFIED@informer IndexerUpdated:DELETED@informer"},
		12: {"story-slow-handler", "ListenerAdded AddReceived HandlerCalled HandlerReturned Distributed " +
			"PendingPushed *PendingPushed^"},
		13: {"life", "FIFOProcessed ReflectorReceived FIFOAdded FIFOPopped *IndexerUpdated Distributed AddReceived " +
			"HandlerCalled"},
		14: {"life", "WorkAdded WorkWoken WorkGot *WorkDone WorkWaited Reconciled WorkRetry"},
		15: {"life", "RequestReceived TxnCommitted Etcd3IncomingSent ReflectorReceived RingAppend IncomingSent " +
			"DispatchStarted InputSent *ResultSent FrameWritten FrameDecoded FIFOAdded IndexerUpdated Distributed " +
			"HandlerCalled WorkGot Reconciled"},
	}
	tries = map[int]told{
		4: {takes.LabPrefix + "hole-in-history", "RingAppend RingAppend^ WireOpened FrameWritten FrameWritten"},
		5: {takes.LabPrefix + "build-the-table", "WireOpened RingAppend ResultSent FrameWritten TxnCommitted " +
			"InputReceived WatcherFiltered"},
		6: {takes.LabPrefix + "one-slow-all-slow", "ResultBlocked InputBlocked DispatchFinished InputBlocked " +
			"DispatchFinished InputBlocked DispatchFinished"},
		10: {takes.LabPrefix + "build-replace", "ReflectorWatchEnded TxnCommitted RingAppend ReflectorWatching " +
			"ReflectorReceived FIFOAdded ReflectorSynced FIFOPopped *IndexerUpdated"},
		12: {takes.LabPrefix + "build-pop", "Distributed HandlerCalled HandlerReturned AddBlocked HandlerReturned " +
			"Distributed AddBlocked HandlerCalled"},
		14: {takes.LabPrefix + "lost-wish", "WorkAdded WorkGot Reconciled HandlerCalled WorkAdded WorkDone WorkWaited"},
	}
	// folds maps a chapter to the index of the foldable answer that its first try gives away; the default is 0.
	folds = map[int]int{4: 1, 14: 1}
)

// figure is a chapter's mini-stage.
type figure struct {
	act
	Try  *act // the first try, before the repair, or nil
	Fold int  // the index of the foldable answer that must be open to show Try
}

// act is a recording and the moments to show from it.
type act struct {
	Take      takes.Take
	Recording string // the recording's [recording.Hash], for links
	Steps     []step
	Key       int // index of the step that represents all in a static view
}

// step is one moment of a figure: a record and its sentence.
type step struct {
	probe.Record
	Says string
}

// newFigure returns the mini-stage of a chapter, or nil if the chapter has none.
func newFigure(chapter int) (*figure, error) {
	main, err := newAct(figures[chapter])
	if main == nil || err != nil {
		return nil, err
	}
	try, err := newAct(tries[chapter])
	return &figure{act: *main, Try: try, Fold: folds[chapter]}, err
}

// newAct finds the moments of t in its recording. It returns nil for an unknown recording, and an error for a missing
// moment or a recording that cannot be read.
func newAct(t told) (*act, error) {
	take, ok := takes.Find(t.take)
	if !ok {
		return nil, nil
	}
	start, records, err := take.Load()
	if err != nil {
		return nil, err
	}
	a := &act{Take: take, Recording: recording.Hash(take.File())}
	names := probe.NewNames()
	start.Names(names)
	for i := range records {
		names.Note(&records[i])
	}
	for i, moment := range strings.Fields(t.moments) {
		moment, isKey := strings.CutPrefix(moment, "*")
		if isKey {
			a.Key = i
		}
		n := indexOf(records, moment, take.Key)
		if n < 0 {
			return nil, fmt.Errorf("the take %s has no %s after step %d", take.Name, moment, i)
		}
		r := &records[n]
		a.Steps = append(a.Steps, step{*r, names.Sentence(r)})
		records = records[n+1:]
	}
	return a, nil
}

// indexOf returns the index of the record that moment names, or -1. Only records of pods, or of no resource, count.
// With "^" it is the record with the highest first arg; otherwise the first one about key, or else the first match.
func indexOf(records []probe.Record, moment, key string) int {
	moment, highest := strings.CutSuffix(moment, "^")
	moment, subject, _ := strings.Cut(moment, "@")
	point, typ, _ := strings.Cut(moment, ":")
	first, most := -1, 0
	for i := range records {
		r := &records[i]
		if r.Point.String() != point || typ != "" && r.Type != typ || subject != "" && r.Subject != subject ||
			r.Resource != stage.FirstResource && r.Resource != "" {
			continue
		}
		switch {
		case highest && r.Args[0] > most:
			first, most = i, r.Args[0]
		case highest:
		case r.Key != "" && probe.ObjectKey(r.Key) == key:
			return i
		case first < 0:
			first = i
		}
	}
	return first
}

// frame returns the address of the mini-stage: the stage itself, with the recording.
func (a *act) frame() string { return "/?figure=1&take=" + a.Take.Name }

// whole returns the address of the whole stage at a step of the recording.
func (a *act) whole(s step) string {
	return fmt.Sprintf("/?take=%s#recording=%s&at=%d", a.Take.Name, a.Recording, s.Seq)
}
