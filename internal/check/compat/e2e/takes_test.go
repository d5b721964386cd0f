package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/recording"
	"listwatch/internal/observe/takes"
)

// samePictures seeks to twenty moments of what the page replays, and compares with our own fold.
func (p *page) samePictures(t *testing.T, start *fold.State, records []probe.Record) {
	t.Helper()
	p.replays(t, records)
	random := rand.New(rand.NewPCG(9, 10))
	for range 20 {
		cursor := random.IntN(len(records)) + 1
		state := start.Clone()
		state.Apply(records[:cursor])
		if got, want := p.seek(t, int(state.Seq)), fmt.Sprint(state.Seq, " ", state.Hash()); got != want {
			t.Fatalf("after %d records: the page shows %s, want %s", cursor, got, want)
		}
	}
}

// replays waits until the page has the whole recording.
func (p *page) replays(t *testing.T, records []probe.Record) {
	t.Helper()
	last := records[len(records)-1].Seq
	program.Eventually(t, patience, func() (bool, string) {
		m := p.moment(t)
		return m.Mode == "replay" && m.Head == last, fmt.Sprintf("%+v, want the recording up to %d", m, last)
	})
}

// TestEveryRecordingOfTheRepositoryReplaysInThePage: with FULL each, otherwise one. Package viz folds them all with the
// page's script, without a browser.
func TestEveryRecordingOfTheRepositoryReplaysInThePage(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false", "-controllers=false")
	p := openPage(t, v.URL)
	all := takes.All
	if !full {
		all = all[:1]
	}
	for _, take := range all {
		start, records, err := take.Load()
		require.NoError(t, err)
		p.navigate(t, v.URL+"/?take="+take.Name)
		p.samePictures(t, start, records)
	}
	p.showsThatEtcdRefusesWrites(t, v.URL)
}

// showsThatEtcdRefusesWrites looks at etcd while none of its nodes leads, and when one does.
func (p *page) showsThatEtcdRefusesWrites(t *testing.T, url string) {
	t.Helper()
	take, _ := takes.Find(takes.StoryPrefix + "leader-gone")
	_, records, err := take.Load()
	require.NoError(t, err)
	p.navigate(t, url+"/?take="+take.Name)
	p.replays(t, records)
	said := ""
	for _, r := range records {
		if r.Point != probe.EtcdLookedAt {
			continue
		}
		p.seek(t, int(r.Seq))
		want := fmt.Sprint(r.Args[2] == 1, r.Args[2] == 1)
		p.becomes(t, want, `$('[data-station="etcd"]').classList.contains("refuses") + " " +
			($text('[data-text="etcd.full"]') === "no writes")`)
		said += want + "\n"
	}
	assert.True(t, said == "true true\nfalse false\n", "etcd was looked at with %q", said)
}

// TestAnOldRecordingReplaysAndIsSaidToBeOld shows what an earlier version of the program recorded.
func TestAnOldRecordingReplaysAndIsSaidToBeOld(t *testing.T) {
	t.Parallel()
	const name = "../../../observe/takes/testdata/old.lw.gz"
	_, records := readRecording(t, name)
	v := startViz(t, "-replay", name)
	openPage(t, v.URL).samePictures(t, fold.New(), records)
	if said := v.Stderr.String(); !strings.Contains(said, "another version") {
		t.Errorf("the program says %q, want that the recording is old", said)
	}
}

// writeRecording writes a recording of these records and returns the name of its file.
func writeRecording(t *testing.T, records []probe.Record) (name string) {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "*.lw.gz")
	require.NoError(t, err)
	require.NoError(t, recording.WriteAll(file, recording.NewHeader(time.Unix(0, 0), nil), records))
	require.NoError(t, file.Close())
	return file.Name()
}
