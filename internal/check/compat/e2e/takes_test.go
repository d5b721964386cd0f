package e2e

import (
	"fmt"
	"os"
	"testing"
	"time"

	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/recording"
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
