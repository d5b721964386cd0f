package viz

import (
	"bufio"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
)

// told is what a page has learned from its feed: what it was sent one by one, and what in sums.
type told struct {
	state                    *fold.State
	frames, sums             int
	records, summed          uint64
	forced, followed, others int         // one by one: evictions, records of default/f, others that came with a sum
	sumsAt                   []time.Time // when sums came
	problem                  []string    // what does not fit together
}

// listen reads a feed to its end.
func (p *told) listen(t *testing.T, in *bufio.Reader) {
	for m, ok := next(t, in); ok; m, ok = next(t, in) {
		p.hear(m)
	}
}

func (p *told) hear(m message) {
	switch m.event {
	case "frame":
		p.frames++
		p.records += p.take(m.data, true)
	case "coalesced":
		p.sums++
		p.sumsAt = append(p.sumsAt, time.Now())
		p.sum(m)
	}
}

func (p *told) sum(m message) {
	var sum struct {
		From, Seq, Records uint64
		Kept, State        json.RawMessage
	}
	if err := json.Unmarshal([]byte(m.data), &sum); err != nil {
		p.problem = append(p.problem, err.Error())
	}
	if sum.From != p.state.Seq || fmt.Sprint(sum.Seq) != m.id || sum.Records != sum.Seq-sum.From {
		p.problem = append(p.problem, fmt.Sprintf("a sum of %d from %d to %d under id %s, and the page is at %d",
			sum.Records, sum.From, sum.Seq, m.id, p.state.Seq))
	}
	p.take(string(sum.Kept), false)
	p.summed += sum.Records
	p.state, _ = fold.Read(sum.State)
}

// take counts records, and folds them if the picture does not come by itself.
func (p *told) take(data string, apply bool) uint64 {
	var list []json.RawMessage
	if err := json.Unmarshal([]byte(data), &list); err != nil {
		p.problem = append(p.problem, err.Error())
	}
	last := uint64(0)
	for _, written := range list {
		r, err := fold.ReadRecord(written)
		if err != nil || r.Seq <= last {
			p.problem = append(p.problem, fmt.Sprintf("record %d after %d: %v", r.Seq, last, err))
		}
		last = r.Seq
		switch {
		case r.Point == probe.WatcherForced:
			p.forced++
		case r.Key == "/registry/pods/default/f":
			p.followed++
		case !apply:
			p.others++
		}
		if apply {
			p.state.Apply([]probe.Record{r})
		}
	}
	return uint64(len(list))
}

// TestWhatNobodyCanLookAtComesInSums writes thirty thousand records a second for three seconds, with an eviction and a
// record of the object that the page follows in every frame's time; and then hardly anything.
func TestWhatNobodyCanLookAtComesInSums(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newStand(t, probe.NewLog(clock.RealClock{}, 1<<17))
		page := &told{state: fold.New()}
		in := bufio.NewReader(s.get(t, "/viz/events?since=0&resource=pods&key=default/f", "").Body)
		heard := make(chan struct{}) // closed when the feed has ended
		go func() { page.listen(t, in); close(heard) }()
		const rounds = 90
		for range rounds {
			s.append(998)
			s.pods.Subject("w1").At(probe.WatcherForced, "", 0)
			s.pods.At(probe.TxnCommitted, "/registry/pods/default/f", s.log.Last()+1)
			time.Sleep(framePeriod)
		}
		lately := time.Now().Add(-time.Second)
		time.Sleep(2 * flowPeriod) // for the last sum
		synctest.Wait()
		frames, sums := page.frames, page.sums
		if page.records+page.summed != rounds*1000 || page.summed < 60*1000 {
			t.Errorf("%d records came one by one and %d in sums, want %d together, most of them in sums", page.records,
				page.summed, rounds*1000)
		}
		if page.forced != rounds || page.followed != rounds {
			t.Errorf("%d evictions and %d records of what is followed came one by one, want %d of each", page.forced,
				page.followed, rounds)
		}
		page.sumsAt = slices.DeleteFunc(page.sumsAt, lately.After)
		if n := len(page.sumsAt); n < 2 || n > 4 { // the last one came after the last record
			t.Errorf("%d sums since a second before the last record, want about three", n)
		}
		if page.others == 0 || page.others > sums*flowTail { // the newest few
			t.Errorf("%d other records came with %d sums, want %d with each at most", page.others, sums, flowTail)
		}
		time.Sleep(4 * flowMemory)
		s.append(5)
		time.Sleep(bookmarkPeriod)
		s.append(5)
		time.Sleep(bookmarkPeriod)
		synctest.Wait()
		assert.True(t, page.frames == frames+2 && page.sums <= sums+1,
			"in silence: %d frames and %d sums more, want two frames", page.frames-frames, page.sums-sums)
		_, written, _ := s.ui.pictures.Snapshot(t.Context())
		server, _ := fold.Read(written)
		assert.NoDiff(t, server, page.state, "the page's picture is not the server's")
		for _, problem := range page.problem {
			t.Error(problem)
		}
		s.stop()
		<-heard
	})
}
