package e2e

import (
	"fmt"
	"os"
	"testing"
	"time"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/recording"
	"listwatch/internal/observe/takes"
)

// replays waits until the page has the whole recording.
func (p *page) replays(t *testing.T, records []probe.Record) {
	t.Helper()
	last := records[len(records)-1].Seq
	program.Eventually(t, patience, func() (bool, string) {
		m := p.moment(t)
		return m.Mode == "replay" && m.Head == last, fmt.Sprintf("%+v, want the recording up to %d", m, last)
	})
}

// TestThePageShowsThatEtcdRefusesWrites looks at etcd while none of its nodes leads, and when one does.
func TestThePageShowsThatEtcdRefusesWrites(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false", "-controllers=false")
	p := openPage(t, v.URL)
	take, _ := takes.Find(takes.StoryPrefix + "leader-gone")
	_, records, err := take.Load()
	require.NoError(t, err)
	p.navigate(t, v.URL+"/?take="+take.Name)
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

// writeRecording writes a recording of these records and returns the name of its file.
func writeRecording(t *testing.T, records []probe.Record) (name string) {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "*.lw.gz")
	require.NoError(t, err)
	require.NoError(t, recording.WriteAll(file, recording.NewHeader(time.Unix(0, 0), nil), records))
	require.NoError(t, file.Close())
	return file.Name()
}

// reel is a recording that is written record by record: of changes of the pod default/a, one every millisecond.
type reel []probe.Record

func (r *reel) add(point probe.Point, subject string, rv int, args ...int) {
	n := len(*r)
	next := probe.Record{Seq: uint64(n + 1), Time: time.Duration(n) * time.Millisecond, Resource: "pods", Point: point,
		Subject: subject, Type: "MODIFIED", Key: "/registry/pods/default/a", RV: uint64(rv)}
	copy(next.Args[:], args)
	*r = append(*r, next)
}
