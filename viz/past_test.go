package viz

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/recording"
	"listwatch/viz/frame"
	"listwatch/viz/timeline"
)

// busy returns a page over a log with size slots, after n records of watchers that come and go.
func busy(size, n int) (*UI, *probe.Log) {
	clk := clocktesting.NewFakePassiveClock(time.Now())
	log := probe.NewLog(clk, size)
	pods := probe.New(log).Resource("pods")
	ui := show(log)
	random := rand.New(rand.NewPCG(1, 2))
	for log.Last() < uint64(n) {
		rv := log.Last() + 1
		clk.SetTime(clk.Now().Add(4 * time.Millisecond)) // so keyframes are equally far apart on any machine
		w := pods.Subject(fmt.Sprint("w", random.IntN(5)))
		key := "/registry/pods/default/" + string(rune('a'+random.IntN(6)))
		switch random.IntN(12) {
		case 0:
			w.Text(probe.WatcherAdded, "everything", "/registry/pods/", rv, 10)
		case 1:
			w.At(probe.WatcherRemoved, "", 0)
		case 2:
			pods.Event(probe.RingAppend, "ADDED", key, rv, 0, int(rv), 100, 1)
		case 3:
			pods.Event(probe.StoreUpdate, "MODIFIED", key, rv, 3)
		case 4:
			if random.IntN(10) == 0 {
				w.At(probe.WatcherForced, "", 0)
			}
		case 5:
			w.Event(probe.InputReceived, "ADDED", key, rv, 0, 10)
		default:
			w.Event(probe.InputSent, "ADDED", key, rv, 1, 10)
		}
		ui.pictures.unnamed(context.Background())
	}
	return ui, log
}

// read requests a path, decodes an answer of 200 into a value, and returns the code.
func read(t *testing.T, ui *UI, path string, into any) int {
	t.Helper()
	answer := ask(ui, "GET", path, "")
	if answer.Code == http.StatusOK {
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), into), path)
	}
	return answer.Code
}

type recordsAnswer struct {
	Next    uint64
	Records []json.RawMessage
}

// pictureAt computes the picture at a cursor as a page does: from a keyframe, and the records after it.
func pictureAt(t *testing.T, ui *UI, cursor uint64) *fold.State {
	t.Helper()
	var frame struct {
		Seq   uint64
		State json.RawMessage
	}
	require.Equal(t, http.StatusOK, read(t, ui, fmt.Sprint("/viz/keyframe?at=", cursor), &frame), "keyframe at %d",
		cursor)
	state := require.Value(fold.Read(frame.State))(t)
	for from := frame.Seq + 1; from <= cursor; {
		var tail recordsAnswer
		code := read(t, ui, fmt.Sprintf("/viz/records?from=%d&to=%d&limit=37", from, cursor+1), &tail)
		require.True(t, code == http.StatusOK, "records [%d, %d]: got %d", from, cursor, code)
		for _, written := range tail.Records {
			r := require.Value(fold.ReadRecord(written))(t)
			state.Apply([]probe.Record{r})
		}
		from = tail.Next
	}
	return state
}

func TestAnyPictureCanBeHadAgain(t *testing.T) {
	const n = 1500
	ui, log := busy(4096, n)
	random := rand.New(rand.NewPCG(3, 4))
	for range 40 {
		cursor := uint64(random.IntN(n + 1))
		records, _ := log.Since(nil, 0, int(cursor))
		want := fold.New()
		want.Apply(records)
		require.True(t, assert.NoDiff(t, want, pictureAt(t, ui, cursor)), "at %d", cursor)
	}
}

func TestWhatHasLeftTheLogIsGoneAndTheRestCanBeHad(t *testing.T) {
	ui, _ := busy(512, 3000)
	var line timeline.Span
	read(t, ui, "/viz/timeline", &line)
	assert.True(t, line.Oldest >= 3000-512 && line.Oldest <= 3000-512+512/4,
		"oldest picture: got %d, want one shortly after %d", line.Oldest, 3000-512)
	got := pictureAt(t, ui, line.Oldest)
	assert.Equal(t, line.Oldest, got.Seq, "picture at %d: got that at", line.Oldest)
	rec := require.Value(recording.Read(t.Context(), ask(ui, http.MethodGet, "/viz/recording", "").Body))(t)
	assert.NoDiff(t, got, rec.Start, "a recording begins with another picture")
	assert.Equal(t, 3000-int(line.Oldest), len(rec.Records), "records in a recording")
	for _, path := range []string{fmt.Sprint("/viz/keyframe?at=", line.Oldest-1), "/viz/records?from=7",
		"/viz/keyframe?at=3000&log=ANOTHER", "/viz/records?log=ANOTHER"} {
		assert.Equal(t, http.StatusGone, read(t, ui, path, nil), path)
	}
	for _, path := range []string{"/viz/keyframe?at=x", "/viz/records?from=0", "/viz/records?from=9&to=8",
		"/viz/records?limit=-1", "/viz/records?rv=a", "/viz/events?since=-1",
		"/viz/events?since=99999999999999999999"} {
		assert.Equal(t, http.StatusBadRequest, read(t, ui, path, nil), path)
	}
	var none recordsAnswer
	if code := read(t, ui, "/viz/records?from=4000&to=5000", &none); code != http.StatusOK || len(none.Records) != 0 {
		t.Errorf("records of the future: got %d with %d, want none", code, len(none.Records))
	}
}

func TestRecordsOfOneObjectOrOneVersion(t *testing.T) {
	log, pods := newLog()
	ui := show(log)
	pods.Event(probe.TxnCommitted, "ADDED", "/registry/pods/default/a", 7)
	pods.Event(probe.TxnCommitted, "ADDED", "/registry/pods/default/ab", 8)
	pods.Event(probe.IndexerUpdated, "Added", "default/a", 7, 1)
	pods.Event(probe.IndexerUpdated, "Added", "default/ab", 8, 2)
	probe.New(log).Resource("nodes").Event(probe.TxnCommitted, "ADDED", "/registry/nodes/a", 9)
	tests := []struct {
		query string
		want  string
	}{
		{"", "[1 2 3 4 5]"},
		{"key=default/a", "[1 3]"},
		{"rv=8", "[2 4]"},
		{"key=default/a&rv=8", "[]"},
		{"resource=nodes", "[5]"},
		{"from=2&to=4", "[2 3]"},
		{"limit=2", "[1 2]"},
		{"point=IndexerUpdated", "[3 4]"},
		{"n=2|9", "[4]"},
		{"point=IndexerUpdated&key=default/a", "[3]"},
		{"point=IndexerUpdated,TxnCommitted&key=default/a", "[1 3]"},
		{"subject=informer", "[]"},
	}
	for _, test := range tests {
		var answer recordsAnswer
		read(t, ui, "/viz/records?"+test.query, &answer)
		seqs := []uint64{}
		for _, written := range answer.Records {
			r, _ := fold.ReadRecord(written)
			seqs = append(seqs, r.Seq)
		}
		assert.Equal(t, test.want, fmt.Sprint(seqs), "%q", test.query)
	}
}

func TestTheLogTellsWhatWasAskedForInSentences(t *testing.T) {
	log, pods := newLog()
	ui := show(log)
	pods.Event(probe.TxnCommitted, "ADDED", "/registry/pods/default/a", 7)
	pods.Event(probe.TxnCommitted, "ADDED", "/registry/pods/default/b", 8)
	pods.Subject("w1").Text(probe.WireOpened, "curl\x1b[2J", "", 0)
	for query, want := range map[string]string{
		"?key=default/a":                      "etcd commits ADDED default/a as revision 7.\n",
		"?subject=w1":                         "The stream of curl\ufffd[2J is open: curl\ufffd[2J .\n",
		"?agent=curl*&subject=w1":             "The stream of curl\ufffd[2J is open: curl\ufffd[2J .\n",
		"?agent=kubectl*":                     "",
		"?point=RingAppend":                   "",
		"?point=WireOpened,TxnCommitted&rv=8": "etcd commits ADDED default/b as revision 8.\n",
	} {
		answer := ask(ui, "GET", "/viz/told"+query, "")
		assert.True(t, answer.Code == http.StatusOK && answer.Body.String() == want,
			"%q: got %d %q, want %q", query, answer.Code, answer.Body, want)
	}
	assert.Equal(t, http.StatusBadRequest, ask(ui, "GET", "/viz/told?rv=none", "").Code, "a version that is no number")
}

// TestTheHistoryNamesTheClient: a watcher has its client's name if its stream opened in the log, or in the picture
// before the log; otherwise it has its own name.
func TestTheHistoryNamesTheClient(t *testing.T) {
	opened := func(seq uint64, watcher, text string) probe.Record {
		return probe.Record{Seq: seq, Point: probe.WireOpened, Resource: "pods", Subject: watcher,
			Texts: probe.TextsOf(probe.WireOpened, text)}
	}
	start := fold.New()
	start.Apply([]probe.Record{{Seq: 1, Point: probe.WatcherAdded, Resource: "pods", Subject: "w4"},
		opened(2, "w4", "listwatch-page-1")})
	log, _ := newLog()
	log.Replay(opened(3, "w5", "kubectl/v1.37.2 (linux)"))
	for i, watcher := range []string{"w4", "w5", "w6"} {
		log.Replay(probe.Record{Seq: uint64(4 + i), Point: probe.WatcherForced, Resource: "pods", Subject: watcher})
	}
	pictures := NewPictures(log, start, nil)
	history := leaf(t, New(pictures, frame.New(log, pictures), nil), "watcher/history")
	for _, who := range []string{"page-1", "kubectl", "w6"} {
		assert.True(t, strings.Contains(history, who+" does not keep up and is closed; its client resumes"), history)
	}
}

func TestTheTimelineCountsEverythingAndFlagsWhatMustBeSeen(t *testing.T) {
	ui, log := busy(4096, 3000)
	var line timeline.Span
	require.Equal(t, http.StatusOK, read(t, ui, "/viz/timeline", &line))
	var records, events uint64
	for _, b := range line.Buckets {
		records += b[2]
		events += b[3]
	}
	all, _ := log.Since(nil, 0, 3000)
	var wantEvents uint64
	flags := 0
	for i := range all {
		if all[i].Point == probe.RingAppend {
			wantEvents++
		}
		if all[i].Anomaly() {
			flags++
		}
	}
	assert.True(t, records == 3000 && events == wantEvents && line.Last == 3000,
		"got %d records with %d events, up to %d; want 3000 with %d", records, events, line.Last, wantEvents)
	assert.True(t, len(line.Flags) == flags && flags != 0, "got %d flags, want %d, and some", len(line.Flags), flags)
}

// TestAPictureAheadOfItsLogIsShown checks that the fold does not wait for records that will never come.
func TestAPictureAheadOfItsLogIsShown(t *testing.T) {
	log, p := newLog()
	p.At(probe.RingAppend, "default/a", 1)
	pictures := NewPictures(log, &fold.State{Seq: 1_000_000, Resources: map[string]*fold.Resource{}}, nil)
	ui := New(pictures, frame.New(log, pictures), nil)
	seq, _ := snapshotOf(t, ui)
	assert.Equal(t, 1_000_000, seq, "the picture stands at")
}

// TestOneStateIsWrittenForAllPages checks that the pages share the encoded state of a sum.
func TestOneStateIsWrittenForAllPages(t *testing.T) {
	log, p := newLog()
	f := NewPictures(log, nil, nil)
	p.At(probe.RingAppend, "default/a", 1)
	_, first, _ := f.shared(t.Context(), 0)
	p.At(probe.RingAppend, "default/b", 2)
	_, second, _ := f.shared(t.Context(), 0)
	assert.Equal(t, &second[0], &first[0], "a second page had the state written again")
	seq, _, _ := f.shared(t.Context(), 1)
	assert.Equal(t, 2, seq, "a page that knows record 1 was sent")
}

// TestFoldingALongLogEndsWithItsCaller: one batch is folded for a canceled caller; the next caller folds the rest.
func TestFoldingALongLogEndsWithItsCaller(t *testing.T) {
	log := probe.NewLog(clock.RealClock{}, 10*foldBatch)
	for range 10 * foldBatch {
		probe.New(log).Resource("pods").At(probe.TxnCommitted, "default/a", 1)
	}
	f := NewPictures(log, nil, nil)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Now(gone); !errors.Is(err, context.Canceled) || f.state.Seq != foldBatch {
		t.Errorf("folded up to %d: %v; want %d and that the caller has gone", f.state.Seq, err, foldBatch)
	}
	state, err := f.Now(t.Context())
	assert.True(t, err == nil && state.Seq == 10*foldBatch, "then up to %d: %v", state.Seq, err)
}
