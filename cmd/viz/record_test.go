package main

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/bubble"
	"listwatch/internal/eventually"
	"listwatch/internal/fold"
	"listwatch/internal/probe"
	"listwatch/internal/recording"
)

func TestARecordingContainsTheEndOfBothHalves(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log.gz")
	p := start(t, "-record", name, "-flight=off")
	p.endSoon(t)
	_, records := readRecording(t, name)
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
	bubble.Test(t, func(t *testing.T) {
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
		if said := stderr.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, name) || !strings.Contains(said, "continues without") {
			t.Errorf("said %q", said)
		}
		if err := stop(); !errors.Is(err, recording.ErrGap) {
			t.Errorf("got %v, want ErrGap", err)
		}
	})
}

// TestARecordingOfAServerElsewhereHasWhatPassedTheLens has a client watch through the lens, with a token that no recording may hold.
func TestARecordingOfAServerElsewhereHasWhatPassedTheLens(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log.gz")
	server := start(t, "-flight=off", "-demo=false", "-controllers=false")
	p := start(t, "-server", server.url, "-record", name, "-flight=off")
	tells := func(point string) {
		eventually.Holds(t, point+" is told", func() bool {
			_, body := p.get(t, "/viz/records")
			return strings.Contains(body, `"`+point+`"`)
		})
	}
	tells("ReflectorSynced")
	request, err := http.NewRequest(http.MethodGet, p.url+podsPath+"?watch=true&resourceVersion=0&token=s3cret", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("User-Agent", "controller/v1")
	request.Header.Set("Authorization", "Bearer s3cret")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	server.createPod(t, "a")
	tells("FrameWritten")
	p.endSoon(t)
	server.endSoon(t)
	header, records := readRecording(t, name)
	if header.Switches["server"] == "" {
		t.Fatalf("got switches %v", header.Switches)
	}
	state, told := fold.New(), map[string]bool{}
	for _, r := range records {
		told[fmt.Sprintf("%v %s %s %s", r.Point, r.Subject, r.Type, r.Key)] = true
		if strings.Contains(r.Text, "s3cret") {
			t.Errorf("told: %s", r.Text)
		}
		if r.Point == probe.FrameWritten {
			state.Apply(records[:r.Seq-records[0].Seq+1])
			break
		}
	}
	if !told["FrameWritten c1 ADDED default/a"] || !told["ReflectorSynced informer  "] {
		t.Errorf("got %v", told)
	}
	if watcher := state.Resources["pods"].Subjects["c1"]; watcher == nil || watcher.Kind != "watcher" || !strings.HasPrefix(watcher.Texts["WireOpened"], "controller/v1 /api/v1/") {
		t.Errorf("got %+v", watcher)
	}
}

// readRecording is what -record left in the file.
func readRecording(t *testing.T, file string) (recording.Header, []probe.Record) {
	t.Helper()
	rec, err := recording.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	return rec.Header, rec.Records
}
