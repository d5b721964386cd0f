package probe

import (
	"slices"
	"testing"

	"k8s.io/utils/clock"
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
		if !slices.Equal(got, test.want) {
			t.Errorf("(%d, %d]: got %v, want %v", test.from, test.to, got, test.want)
		}
	}
	for r := range log.Between(12, 20) {
		p.At(RingAppend, "default/a", r.RV)
		break // ends the walk
	}
}
