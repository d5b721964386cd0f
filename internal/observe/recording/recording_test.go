package recording

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/recordingbombs"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWhatIsWrittenIsReadAndLoaded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		log := probe.NewLog(clock.RealClock{}, 64)
		p := probe.New(log).Resource("pods").Subject("w1")
		ctx, cancel := context.WithCancel(t.Context())
		var file bytes.Buffer
		written := make(chan error, 1) // sent once by the writer
		go func() { written <- Write(ctx, log, map[string]string{"fifo": "real"}, &file) }()
		synctest.Wait()
		assert.True(t, Begins(bytes.NewReader(file.Bytes())), "a killed program leaves %q", file.Bytes())
		p.Event(probe.InputSent, "ADDED", "/registry/pods/default/a", 7, 1, 10)
		time.Sleep(3 * time.Second)
		p.Text(probe.WatchChanError, "<b>\"boom\"</b>\n", "", 0)
		cancel()
		require.NoError(t, <-written)

		rec := require.Value(Read(t.Context(), &file))(t)
		header, records := rec.Header, rec.Records
		assert.True(t, header.Switches["fifo"] == "real" && header.Version == Version, "header: got %+v", header)
		want, _ := log.Since(nil, 0, 64)
		assert.EqualSlices(t, want, records, "records")

		replayed := probe.NewLog(clock.RealClock{}, 64)
		for i := range records {
			replayed.Replay(records[i])
		}
		got, _ := replayed.Since(nil, 0, 64)
		assert.EqualSlices(t, want, got, "replayed")
	})
}

func TestARecordingThatFellBehindCanBeReadUpToThere(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		log := probe.NewLog(clock.RealClock{}, 4)
		p := probe.New(log)
		var file bytes.Buffer
		written := make(chan error, 1) // sent once by the writer
		p.At(probe.RingAppend, "default/a", 1)
		go func() { written <- Write(t.Context(), log, nil, &file) }()
		time.Sleep(2 * interval)
		for rv := range uint64(9) {
			p.At(probe.RingAppend, "default/a", 2+rv)
		}
		err := <-written
		assert.True(t, errors.Is(err, ErrGap), "got %v, want ErrGap", err)
		rec, err := Read(t.Context(), &file)
		assert.True(t, err == nil && len(rec.Records) == 1, "read %+v, %v; want the one before the gap", rec, err)
	})
}

// packed returns the text, compressed as in a recording's file.
func packed(t *testing.T, text string) []byte {
	t.Helper()
	var file bytes.Buffer
	w := gzip.NewWriter(&file)
	require.NoError(t, errors.Join(assert.ErrorOf(w.Write([]byte(text))), w.Close()))
	return file.Bytes()
}

func TestWhatIsNoRecordingIsRefusedWithAReason(t *testing.T) {
	zip := func(text string) []byte { return packed(t, text) }
	good := `{"format":"listwatch recording","version":1}` + "\n"
	tests := []struct {
		name string
		file []byte
		want string
	}{
		{"plain text", []byte("hello"), "not a recording"},
		{"empty", zip(""), "no header"},
		{"other JSON", zip("{}\n"), "first line"},
		{"other version", zip(`{"format":"listwatch recording","version":99}` + "\n" + `["RingAppend"]`),
			"is of version 99, and this program reads version 1"},
		{"a gap", zip(good + `{"seq":1,"point":"RingAppend"}` + "\n" + `{"seq":3,"point":"RingAppend"}`),
			"line 3: record 2 is missing"},
		{"time goes back", zip(good + `{"seq":1,"t":5,"point":"RingAppend"}` + "\n" +
			`{"seq":2,"t":4,"point":"RingAppend"}`), "record 2 is earlier"},
		{"huge time", zip(good + `{"seq":1,"t":9007199254740993,"point":"RingAppend"}`), "larger than 2^53"},
		{"huge arg", zip(good + `{"seq":1,"point":"RingAppend","args":[9007199254740993]}`), "larger than 2^53"},
		{"no number", zip(good + `{"point":"RingAppend"}`), "record 0"},
		{"no point", zip(good + `{"seq":1}`), "line 2: read record 1: it names no point"},
		{"a huge table", zip(`{"format":"listwatch recording","version":1,"table":{"RingAppend":"` +
			strings.Repeat("a", maxTexts) + `"}}`), "first line"},
		{"cut off", zip(good + strings.Repeat(`{"seq":1,"point":"RingAppend"}`+"\n", 100))[:40], "unexpected EOF"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Read(t.Context(), bytes.NewReader(test.file))
			assert.True(t, err != nil && strings.Contains(err.Error(), test.want),
				"got %v, want an error with %q", err, test.want)
		})
	}
}

// TestARecordingOfAnotherTableIsRead checks that a recording stays readable after points were added, renamed or
// removed, or got other args.
func TestARecordingOfAnotherTableIsRead(t *testing.T) {
	file := packed(t, `{"format":"listwatch recording","version":1,"more":[],"table":{"AddSent":"len cap",`+
		`"RingAppend":"oldest colour start","StoreUpdate":"n"}}`+"\n"+
		`{"seq":1,"t":5,"point":"AddSent","resource":"pods","subject":"l1","key":"default/a","args":[1,10],`+
		`"texts":{"a":"x"}}`+
		"\n"+`{"seq":2,"t":6,"point":"RingAppend","resource":"pods","rv":"7","args":[3,99,1],"newer":true}`+"\n"+
		`{"seq":3,"t":7,"point":"StoreUpdate","resource":"pods","rv":"7","args":[8]}`)
	rec := require.Value(Read(t.Context(), bytes.NewReader(file)))(t)
	assert.EqualSlices(t, []probe.Record{
		{Seq: 1, Time: 5, Point: probe.Unknown, Resource: "pods", Subject: "l1", Key: "default/a",
			Texts: probe.TextsOf(probe.Unknown, "AddSent")},
		{Seq: 2, Time: 6, Point: probe.RingAppend, Resource: "pods", RV: 7, Args: [4]int{1, 0, 0, 3}},
		{Seq: 3, Time: 7, Point: probe.StoreUpdate, Resource: "pods", RV: 7, Args: [4]int{8}},
	}, rec.Records, "records")
	assert.Equal(t, "A moment of another version of the program: AddSent.", rec.Records[0].Sentence())
	state := fold.New()
	state.Apply(rec.Records[:1])
	assert.True(t, state.Seq == 1 && len(state.Resources) == 0, "the picture of an unknown moment: %+v", state)
	var again bytes.Buffer
	require.NoError(t, WriteAll(&again, NewHeader(time.Now(), nil), rec.Records))
	assert.EqualSlices(t, rec.Records, require.Value(Read(t.Context(), &again))(t).Records, "written again")
}

func TestARecordingIsBounded(t *testing.T) {
	log := probe.NewLog(clock.RealClock{}, 16)
	for range 9 {
		probe.New(log).Resource("pods").At(probe.RingAppend, "default/a", 1)
	}
	records, _ := log.Since(nil, 0, 16)
	write := func() *bytes.Buffer {
		var file bytes.Buffer
		require.NoError(t, WriteAll(&file, NewHeader(time.Now(), nil), records))
		return &file
	}
	if _, err := (limits{1 << 20, 8}).read(t.Context(), write()); err == nil || !strings.Contains(err.Error(),
		"more than the 8 records") {
		t.Errorf("nine records of at most eight: %v", err)
	}
	if _, err := (limits{500, 100}).read(t.Context(), write()); err == nil || !strings.Contains(err.Error(),
		"longer than") {
		t.Errorf("more bytes than there may be: %v", err)
	}
	assert.NoError(t, assert.ErrorOf((limits{1 << 20, 9}).read(t.Context(), write())))
}

func TestAPictureOfAnotherMomentIsRefused(t *testing.T) {
	records := []probe.Record{{Seq: 8, Point: probe.RingAppend}, {Seq: 9, Point: probe.RingAppend}}
	for seq, good := range map[int]bool{6: false, 7: true, 8: false, 1_000_000: false} {
		header := NewHeader(time.Now(), nil)
		header.Keyframe = fmt.Appendf(nil, `{"seq":%d}`, seq)
		var file bytes.Buffer
		require.NoError(t, WriteAll(&file, header, records))
		rec, err := Read(t.Context(), &file)
		assert.True(t, (err == nil) == good && (!good || rec.Start.Seq == 7), "a picture at %d before record 8: %v",
			seq, err)
	}
}

func TestARecordingOpensNoDoors(t *testing.T) {
	log := probe.NewLog(clock.RealClock{}, 16)
	p := probe.New(log).Resource("pods").Subject("w1")
	p.Texts(probe.WireOpened, []string{"curl", "/api/v1/pods", "watch=1&access_token=s3cret"}, "", 0)
	p.Text(probe.WatchChanError, "Authorization: Bearer s3cret", "", 0)
	records, _ := log.Since(nil, 0, 16)
	state := fold.New()
	state.Apply([]probe.Record{{Seq: 1, Point: probe.WatcherAdded, Resource: "pods", Subject: "w1"},
		{Seq: 2, Point: probe.WireOpened, Resource: "pods", Subject: "w1", Texts: records[0].Texts}})
	state.Seq = 0 // state is the picture before the first record
	header := NewHeader(time.Now(), nil)
	header.Keyframe = require.Value(json.Marshal(state))(t)
	flown, written := &bytes.Buffer{}, &bytes.Buffer{}
	require.NoError(t, WriteAll(flown, header, records))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, Write(ctx, log, nil, written))
	for name, file := range map[string]*bytes.Buffer{"flight": flown, "recording": written} {
		rec := require.Value(Read(t.Context(), file))(t)
		all := fmt.Sprint(rec.Records, string(rec.Header.Keyframe))
		assert.True(t, !strings.Contains(all, "s3cret") && strings.Contains(all, "access_token=***"), "%s: %s", name,
			all)
	}
}

// TestAGreedyRecordingIsRefusedBeforeItTakesMemory reads small files that would become large pictures. Read must return
// the error of each before it has taken 250 MB.
func TestAGreedyRecordingIsRefusedBeforeItTakesMemory(t *testing.T) {
	for _, greedy := range recordingbombs.All {
		t.Run(greedy.Name, func(t *testing.T) {
			file := greedy.File()
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			rec, err := Read(t.Context(), bytes.NewReader(file))
			assert.True(t, err != nil && strings.Contains(err.Error(), greedy.Refusal),
				"a file of %d bytes: got %v, want %q", len(file), err, greedy.Refusal)
			runtime.ReadMemStats(&after)
			runtime.KeepAlive(rec)
			grown := int64(after.Sys - before.Sys)
			assert.True(t, grown <= 250<<20, "it took %d MB more from the system", grown>>20)
		})
	}
}

// small is a writer with room for that number of bytes. A Write beyond it returns ENOSPC.
type small int

func (s *small) Write(p []byte) (int, error) {
	if *s -= small(len(p)); *s < 0 {
		return 0, syscall.ENOSPC
	}
	return len(p), nil
}

func TestWhyARecordingCannotBeWrittenIsSaidOnce(t *testing.T) {
	log := probe.NewLog(clock.RealClock{}, 1<<15)
	for range 1 << 15 {
		probe.New(log).Text(probe.RingAppend, rand.Text(), "default/a", log.Last())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	room := small(1 << 16)
	err := Write(ctx, log, nil, &room)
	assert.True(t, err != nil && strings.Count(err.Error(), syscall.ENOSPC.Error()) == 1, "got %v", err)
}

func TestTextsAreCutAsThePageCutsThem(t *testing.T) {
	long := strings.Repeat("é", 100_000)
	file := packed(t, `{"format":"listwatch recording","version":1}`+"\n"+
		`{"seq":1,"point":"RingAppend","resource":"`+long+`","subject":"`+long+`","type":"`+long+`","key":"`+long+
		`","texts":{"why":"`+long+`"}}`)
	rec := require.Value(Read(t.Context(), bytes.NewReader(file)))(t)
	want := strings.Repeat("é", probe.MaxText)
	r := rec.Records[0]
	for name, text := range map[string]string{"resource": r.Resource, "subject": r.Subject, "type": r.Type,
		"key": r.Key, "text": r.Field(probe.FieldWhy)} {
		assert.Equal(t, want, text, "%s: got %d bytes, want %d", name, len(text), len(want))
	}
}

// endless unpacks to one line without an end: each Read returns a piece of packed zeros.
type endless struct {
	packed bytes.Buffer
	zip    *gzip.Writer
	reads  int
	at     func(reads int) // called before each Read
}

func newEndless(at func(reads int)) *endless {
	e := &endless{at: at}
	e.zip = gzip.NewWriter(&e.packed)
	return e
}

func (e *endless) Read(p []byte) (int, error) {
	e.reads++
	e.at(e.reads)
	for e.packed.Len() == 0 {
		_, _ = e.zip.Write(make([]byte, 1<<20))
	}
	return e.packed.Read(p)
}

// TestAnEndlessLineIsRefusedAtItsBound checks that the program reads little more than the maximum length of a line.
func TestAnEndlessLineIsRefusedAtItsBound(t *testing.T) {
	file := newEndless(func(int) {})
	_, err := Read(t.Context(), file)
	assert.True(t, err != nil && strings.Contains(err.Error(), "a line is longer than the 64 MB that can be shown"),
		"got %v", err)
	assert.True(t, file.packed.Len() < 1<<20 && file.reads < 100, "read on for %d pieces", file.reads)
}

// TestReadingEndsWithItsContext checks that Read returns ctx's error, both in the middle of a line and before a line.
func TestReadingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	file := newEndless(func(reads int) {
		if reads == 3 {
			cancel()
		}
	})
	_, err := Read(ctx, file)
	assert.True(t, errors.Is(err, context.Canceled) && file.reads < 6, "got %v after %d pieces", err, file.reads)
	line := `{"seq":1,"point":"RingAppend"}`
	_, err = Read(ctx, bytes.NewReader(packed(t, `{"format":"listwatch recording","version":1}`+"\n"+line)))
	assert.True(t, errors.Is(err, context.Canceled), "got %v", err)
}
