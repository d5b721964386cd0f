package probe

import (
	"testing"

	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
)

// TestBetweenYieldsWhatTheLogHolds has a log of 8 records, of which 20 were written.
func TestBetweenYieldsWhatTheLogHolds(t *testing.T) {
	log := NewLog(clock.RealClock{}, 8)
	p := New(log)
	for rv := range uint64(20) {
		p.At(RingAppend, "default/a", rv)
	}
	for _, test := range []struct {
		from, to uint64
		want     []uint64
	}{
		{14, 17, []uint64{15, 16, 17}},
		{18, 40, []uint64{19, 20}},
		{2, 14, []uint64{13, 14}}, // the first ones have left the log
		{2, 6, nil},
		{30, 40, nil},
		{15, 15, nil},
	} {
		var got []uint64
		for r := range log.Between(test.from, test.to) {
			got = append(got, r.Seq)
		}
		assert.EqualSlices(t, got, test.want, "(%d, %d]", test.from, test.to)
	}
	for r := range log.Between(12, 20) {
		p.At(RingAppend, "default/a", r.RV)
		break // ends the walk
	}
}
