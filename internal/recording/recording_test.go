package recording

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/utils/clock"

	"listwatch/internal/probe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWhatIsWrittenIsReadAndLoaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := probe.NewLog(clock.RealClock{}, 64)
		p := probe.New(log).Resource("pods").Subject("w1")
		ctx, cancel := context.WithCancel(t.Context())
		var file bytes.Buffer
		written := make(chan error, 1) // sent once by the writer
		go func() {
			written <- Write(ctx, log, clock.RealClock{}, map[string]string{"fifo": "real"}, &file)
		}()
		p.Event(probe.InputSent, "ADDED", "/registry/pods/default/a", 7, 1, 10)
		time.Sleep(3 * time.Second)
		p.Text(probe.WatchChanError, "<b>\"boom\"</b>\n", "", 0)
		cancel()
		if err := <-written; err != nil {
			t.Fatal(err)
		}

		header, records, err := Read(&file)
		if err != nil {
			t.Fatal(err)
		}
		if header.Switches["fifo"] != "real" || header.Version != Version {
			t.Errorf("header: got %+v", header)
		}
		want, _ := log.Since(nil, 0, 64)
		if !slices.Equal(records, want) {
			t.Fatalf("records: got %+v, want %+v", records, want)
		}

		replayed := probe.NewLog(clock.RealClock{}, 64)
		Load(replayed, records)
		if got, _ := replayed.Since(nil, 0, 64); !slices.Equal(got, want) {
			t.Errorf("replayed: got %+v, want %+v", got, want)
		}
	})
}

func TestALogThatMovedOnIsReported(t *testing.T) {
	log := probe.NewLog(clock.RealClock{}, 4)
	w := &writer{log: log, out: &bytes.Buffer{}}
	for rv := range uint64(9) {
		probe.New(log).At(probe.RingAppend, "default/a", rv)
	}
	if err := w.drain(); !errors.Is(err, ErrGap) {
		t.Errorf("got %v, want ErrGap", err)
	}
}

func TestWhatIsNoRecordingIsRefusedWithAReason(t *testing.T) {
	zip := func(text string) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		w.Write([]byte(text))
		w.Close()
		return b.Bytes()
	}
	good := `{"format":"listwatch recording","version":1}` + "\n"
	tests := []struct {
		name string
		file []byte
		want string
	}{
		{"plain text", []byte("hello"), "not a recording"},
		{"empty", zip(""), "no header"},
		{"other JSON", zip("{}\n"), "first line"},
		{"other version", zip(`{"format":"listwatch recording","version":99}`), "version 99"},
		{"unknown point", zip(good + `{"seq":1,"point":"Nowhere"}`), `line 2: read record 1: no point "Nowhere"`},
		{"cut off", zip(good + strings.Repeat(`{"seq":1,"point":"RingAppend"}`+"\n", 100))[:40], "unexpected EOF"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, _, err := Read(bytes.NewReader(test.file)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}
