package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/probe"
	"listwatch/internal/recording"
)

func TestARecordingContainsTheEndOfBothHalves(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log.gz")
	p := start(t, "-record", name, "-flight=off")
	p.endSoon(t)
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	_, records, err := recording.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	count := map[probe.Point]int{}
	for i := range records {
		count[records[i].Point]++
	}
	for begin, end := range map[probe.Point]probe.Point{
		probe.WatcherAdded: probe.WatcherRemoved, probe.ListenerAdded: probe.ListenerRemoved, probe.WireOpened: probe.WireClosed,
	} {
		if count[begin] == 0 || count[begin] != count[end] {
			t.Errorf("%d %v, %d %v", count[begin], begin, count[end], end)
		}
	}
}

func TestARecordingThatFallsBehindEndsAloneAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "log.gz")
		var stderr strings.Builder
		log := probe.NewLog(clock.RealClock{}, 4)
		stop, err := startRecording(&options{record: name}, log, &stderr)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for rv := range uint64(9) {
			probe.New(log).At(probe.RingAppend, "default/a", rv)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if said := stderr.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, name) || !strings.Contains(said, "goes on without") {
			t.Errorf("said %q", said)
		}
		if err := stop(); !errors.Is(err, recording.ErrGap) {
			t.Errorf("got %v, want ErrGap", err)
		}
	})
}
