package book

import (
	"cmp"
	"fmt"
	"slices"

	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/recording"
	"listwatch/internal/observe/takes"
	text "listwatch/internal/text/book"
	"listwatch/viz/stage"
)

// chapterTakes says which recording is shown with a chapter. A chapter that is not named has the life of a pod.
var chapterTakes = map[int]string{3: "start", 4: "ring", 5: "story-selector", 6: "slow", 10: "story-two-queues",
	12: "story-slow-handler"}

// chapterTries says which recording of a first try, made from a lab's broken source, a chapter shows before its repair,
// and the moments that tell it, in order: the first of a point after the one before.
var chapterTries = map[int]struct {
	take   string
	points []string
}{
	4: {takes.LabPrefix + "hole-in-history", []string{
		"RingAppend", "WatcherAdded", "ResultSent", "WatcherInterval", "FrameWritten"}},
	5: {takes.LabPrefix + "build-the-table", []string{
		"WatcherAdded", "WatcherFiltered", "WatcherInterval", "RingAppend", "ResultSent", "FrameWritten",
		"TxnCommitted", "InputReceived", "WatcherFiltered"}},
	6: {takes.LabPrefix + "one-slow-all-slow", []string{
		"ResultBlocked", "DispatchBlocked", "InputBlocked", "DispatchFinished", "DispatchBlocked", "InputBlocked",
		"DispatchFinished", "DispatchBlocked", "InputBlocked", "DispatchFinished"}},
	12: {takes.LabPrefix + "build-pop", []string{
		"Distributed", "HandlerCalled", "HandlerReturned", "AddBlocked", "HandlerReturned", "Distributed", "AddBlocked",
		"HandlerCalled"}},
	14: {takes.LabPrefix + "lost-wish", []string{
		"WorkAdded", "WorkGot", "Reconciled", "HandlerCalled", "WorkAdded", "WorkDone", "WorkWaited"}},
}

// chapterPeaks are the points whose first counter says how much waits: the figure of the chapter shows the moment when
// most does.
var chapterPeaks = map[int]probe.Point{4: probe.RingAppend, 10: probe.FIFOAdded, 12: probe.PendingPushed}

// chapterPoints are the moments beside chapters whose own code reports none that is recorded, or hardly any: where a
// resource version comes from and who sees it; what a request becomes; what an informer does with one event; the whole
// way round.
var chapterPoints = map[int][]string{
	1: {"TxnCommitted", "RingAppend", "StoreUpdate", "InputSent", "FrameWritten", "IndexerUpdated"},
	7: {"RequestReceived", "TxnCommitted", "RequestAnswered", "RingAppend", "InputSent"},
	13: {"ReflectorReceived", "FIFOAdded", "FIFOPopped", "IndexerUpdated", "Distributed", "AddReceived",
		"HandlerCalled"},
	15: {
		"RequestReceived", "TxnCommitted", "Etcd3IncomingSent", "ReflectorReceived", "RingAppend", "IncomingSent",
		"DispatchStarted", "InputSent", "ResultSent", "FrameWritten",
		"FrameDecoded", "FIFOAdded", "IndexerUpdated", "Distributed", "HandlerCalled", "WorkGot", "Reconciled",
	},
}

const (
	fewSteps = 4 // a figure with fewer shows its moments again with other types of events
	mostMore = 8 // then it has so many at most
)

// figure is a chapter's mini-stage: moments of a recording, in its order, that the chapter's code tells.
type figure struct {
	act
	Try     *act // the first try, before the repair; nil: none was recorded
	Key     int  // index of the step that stands for all of them where nothing moves
	picture *fold.Resource
}

// act is a recording, and moments of it.
type act struct {
	Take      takes.Take
	Recording string // hash, by which links know it
	Steps     []step
}

// step is one moment of a figure, and the line of code that reported it.
type step struct {
	Point   string
	Station probe.Station
	Seq     uint64
	Says    string
	Anomaly bool
}

// newFigure returns the mini-stage of a chapter, nil if the chapter reports nothing that happens in its recording.
func newFigure(chapter *text.Chapter) (*figure, error) {
	name, ok := chapterTakes[chapter.Number]
	if !ok {
		name = "life"
	}
	take, ok := takes.Find(name)
	if !ok {
		return nil, nil
	}
	state, records, err := take.Load()
	if err != nil {
		return nil, err
	}
	f := &figure{act: act{take, recording.Hash(take.File()), stepsOf(chapter, take, records)}}
	if len(f.Steps) == 0 {
		return nil, nil
	}
	if f.Try, err = newTry(chapter.Number); err != nil {
		return nil, err
	}
	f.Key = keyOf(f.Steps, state.Seq == 0)
	if r := peakOf(records, chapterPeaks[chapter.Number]); r != nil {
		f.Key = slices.IndexFunc(f.Steps, func(s step) bool { return s.Seq == r.Seq })
	}
	state.Apply(records[:f.Steps[f.Key].Seq-state.Seq])
	f.picture = state.Resources[stage.FirstResource]
	if f.picture == nil {
		f.picture = &fold.Resource{}
	}
	return f, nil
}

// newTry returns the first try of a chapter, nil if none was recorded.
func newTry(chapter int) (*act, error) {
	take, ok := takes.Find(chapterTries[chapter].take)
	if !ok {
		return nil, nil
	}
	_, records, err := take.Load()
	if err != nil {
		return nil, err
	}
	try := &act{Take: take, Recording: recording.Hash(take.File())}
	for _, point := range chapterTries[chapter].points {
		i := slices.IndexFunc(records, func(r probe.Record) bool {
			return r.Point.String() == point && (r.Resource == stage.FirstResource || r.Resource == "")
		})
		if i < 0 {
			return nil, fmt.Errorf("the take %s has no %s after step %d", take.Name, point, len(try.Steps))
		}
		try.Steps = append(try.Steps, stepAt(&records[i]))
		records = records[i+1:]
	}
	return try, nil
}

// keyOf chooses the moment that stands for all: what goes wrong, or else one from the middle. A recording that begins
// with nothing (bare) has most to show at its last moment.
func keyOf(steps []step, bare bool) int {
	if i := slices.IndexFunc(steps, func(s step) bool { return s.Anomaly }); i >= 0 {
		return i
	}
	if !bare {
		return len(steps) / 2
	}
	last := 0
	for i := range steps {
		if steps[i].Seq > steps[last].Seq {
			last = i
		}
	}
	return last
}

// stepsOf finds a moment of the recording for every line of the prose that reports one, and for what the chapter
// reports elsewhere; what goes wrong in the recording, if anything does; and its peak. The steps are in the order of
// the recording: the text may jump among them.
func stepsOf(chapter *text.Chapter, take takes.Take, records []probe.Record) []step {
	points := slices.Clone(chapter.Told)
	for _, moment := range chapter.Moments {
		points = append(points, moment.Name)
	}
	var steps []step
	for i, point := range points {
		if slices.Contains(points[:i], point) {
			continue
		}
		after := uint64(0)
		if len(steps) > 0 && i < len(chapter.Told) {
			after = steps[len(steps)-1].Seq
		}
		if r := momentOf(records, point, take.Key, after); r != nil {
			steps = append(steps, stepAt(r))
		}
	}
	for _, point := range chapterPoints[chapter.Number] {
		after := uint64(0)
		if len(steps) > 0 {
			after = steps[len(steps)-1].Seq
		}
		if r := momentOf(records, point, take.Key, after); r != nil {
			steps = append(steps, stepAt(r))
		}
	}
	if len(steps) == 0 {
		return nil
	}
	if len(steps) < fewSteps {
		steps = more(steps, take, records)
	}
	for i := range records {
		known := func(s step) bool { return s.Point == records[i].Point.String() && s.Anomaly }
		if records[i].Anomaly() && !slices.ContainsFunc(steps, known) {
			steps = append(steps, stepAt(&records[i]))
		}
	}
	if r := peakOf(records, chapterPeaks[chapter.Number]); r != nil {
		steps = append(steps, stepAt(r))
	}
	slices.SortFunc(steps, func(a, b step) int { return cmp.Compare(a.Seq, b.Seq) })
	return slices.CompactFunc(steps, func(a, b step) bool { return a.Seq == b.Seq })
}

// peakOf returns the first record of a point with the highest first counter, nil if there is none.
func peakOf(records []probe.Record, point probe.Point) *probe.Record {
	var peak *probe.Record
	for i := range records {
		r := &records[i]
		if r.Point == point && point != 0 && r.Resource == stage.FirstResource && (peak == nil ||
			r.Args[0] > peak.Args[0]) {
			peak = r
		}
	}
	return peak
}

// more adds to the steps the same moments with another type of event, where the recording has them.
func more(steps []step, take takes.Take, records []probe.Record) []step {
	type kind struct{ point, event string }
	seen := make(map[kind]bool)
	first := records[0].Seq
	for _, s := range steps {
		seen[kind{s.Point, records[s.Seq-first].Type}] = true
	}
	points := len(steps)
	for i := range records {
		r := &records[i]
		k := kind{r.Point.String(), r.Type}
		told := slices.ContainsFunc(steps[:points], func(s step) bool { return s.Point == k.point })
		ours := r.Key != "" && probe.ObjectKey(r.Key) == take.Key && r.Resource == stage.FirstResource
		if told && ours && !seen[k] && len(steps) < mostMore {
			seen[k] = true
			steps = append(steps, stepAt(r))
		}
	}
	return steps
}

func stepAt(r *probe.Record) step {
	return step{Point: r.Point.String(), Station: r.Point.Info().Station, Seq: r.Seq, Says: r.Sentence(),
		Anomaly: r.Anomaly()}
}

// momentOf returns the first record of a point, of pods: after a moment and about the object of the story, if there is
// one, or else at all. Nil: it does not happen.
func momentOf(records []probe.Record, point, key string, after uint64) *probe.Record {
	var first, ours *probe.Record
	for i := range records {
		r := &records[i]
		if r.Point.String() != point || r.Resource != stage.FirstResource && r.Resource != "" {
			continue
		}
		about := r.Key != "" && probe.ObjectKey(r.Key) == key
		if about && r.Seq > after {
			return r
		}
		if about && ours == nil {
			ours = r
		}
		if first == nil || first.Seq <= after && r.Seq > after {
			first = r
		}
	}
	if ours != nil {
		return ours
	}
	return first
}

// frame is the address of the mini-stage: the stage itself, showing the recording.
func (a *act) frame() string { return "/?figure=1&take=" + a.Take.Name }

// length is how many steps there are, in both acts.
func (f *figure) length() int {
	if f.Try == nil {
		return len(f.Steps)
	}
	return len(f.Try.Steps) + len(f.Steps)
}

// whole is the address of the whole stage at a step of the recording.
func (a *act) whole(s step) string {
	return fmt.Sprintf("/?take=%s#recording=%s&at=%d", a.Take.Name, a.Recording, s.Seq)
}

// momentQueue is one queue in the drawing of a key moment.
type momentQueue struct {
	Owner, Name string
	fold.Queue
}

// momentOrder is the order of the queues on the path of an event.
var momentOrder = []string{"etcd3-incoming", "etcd3-result", "incoming", "input", "result", "fifo", "pending",
	"workqueue"}

// momentRows is how many queues there is room for.
const momentRows = 9

// queues returns the queues of the picture, in path order, those that hold something first to be kept.
func (f *figure) queues() []momentQueue {
	var all []momentQueue
	for _, name := range momentOrder {
		var same []momentQueue
		for id, subject := range f.picture.Subjects {
			if q := subject.Queues[name]; q != nil {
				same = append(same, momentQueue{Owner: id, Name: name, Queue: *q})
			}
		}
		slices.SortFunc(same, func(a, b momentQueue) int {
			if a.Owner < b.Owner {
				return -1
			}
			return 1
		})
		all = append(all, same...)
	}
	for i := len(all) - 1; i >= 0 && len(all) > momentRows; i-- {
		if all[i].Len == 0 {
			all = slices.Delete(all, i, i+1)
		}
	}
	return all[:min(len(all), momentRows)]
}

// label is what a queue of a drawing is called.
func (q momentQueue) label() string {
	if q.Owner == "cacher" || q.Name == "etcd3-incoming" || q.Name == "etcd3-result" {
		return q.Name
	}
	return q.Owner + " " + q.Name
}

// count is how full a queue is, in numbers.
func (q momentQueue) count() string {
	if q.Cap > 0 {
		return fmt.Sprintf("%d/%d", q.Len, q.Cap)
	}
	return fmt.Sprint(q.Len)
}

// filled is how much of a bar of that width is full.
func (q momentQueue) filled(width float64) float64 {
	if q.Len == 0 {
		return 0
	}
	return width * min(1, max(0.04, float64(q.Len)/float64(max(q.Cap, q.High, q.Len, 1))))
}
