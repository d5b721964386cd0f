package e2e

import (
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/observe/probe"
)

// stalled is the recording of a server half whose watcher w2 has a client that does not read, from the first event that
// does not get through to etcd's stream that no goroutine reads any more. w1 is served.
func stalled() (r reel) {
	fill := func(point probe.Point, subject string, n, size int) {
		for i := range n {
			r.add(point, subject, 100+i, i+1, size)
		}
	}
	r.add(probe.WatchChanOpened, "etcd3-1", 1)
	r.add(probe.WatcherAdded, "w1", 1, 10)
	r.add(probe.WatcherAdded, "w2", 1, 10)
	r.add(probe.ResultReceived, "w2", 7, 0, 10) // and is never rid of it
	fill(probe.ResultSent, "w2", 11, 10)
	r.add(probe.ResultBlocked, "w2", 112)
	fill(probe.InputSent, "w2", 10, 10)
	r.add(probe.DispatchStarted, "cacher", 113, 2)
	r.add(probe.DispatchBlocked, "cacher", 113, 1, 50)
	r.add(probe.InputBlocked, "w2", 113)
	fill(probe.IncomingSent, "cacher", 100, 100)
	r.add(probe.IncomingBlocked, "cacher", 214)
	fill(probe.Etcd3ResultSent, "etcd3-1", 100, 100)
	r.add(probe.Etcd3ResultBlocked, "etcd3-1", 315)
	return r
}

func TestThePageSaysWhoEverybodyWaitsFor(t *testing.T) {
	t.Parallel()
	file := writeRecording(t, stalled())
	v := startViz(t, "-replay", file)
	p := openPage(t, v.URL+"/")
	p.until(t, "window.listwatch?.player.head === %d", len(stalled()))
	p.seek(t, len(stalled()))
	shown := func(script string) string {
		var got string
		program.Eventually(t, patience, func() (bool, string) {
			got = evaluate[string](t, p, `(`+script+`) ?? ""`)
			return got != "", "nothing yet: " + script
		})
		return got
	}
	marked := evaluate[[]string](t, p,
		`$$(".pipe.blocked").map((el) => el.dataset.queue).sort()`)
	if got := strings.Join(marked, " "); got != "etcd3-result incoming input result" {
		t.Errorf("marked as blocked: %s", got)
	}
	p.run(t, `$('[data-station=incoming] [data-queue=incoming]').closest('[tabindex]').focus()`)
	p.press(t, "b")
	chain := shown(`$$("#leaf .chain.full button.place").map((el) => el.textContent).join(" → ")`)
	if want := "incoming of cacher → input of w2 → result of w2"; chain != want {
		t.Errorf("chain: got %q, want %q", chain, want)
	}
	p.run(t, `$("#leaf .chain li:last-child button.place").click()`)
	got := shown(`$('#leaf .leaf.blocked[data-title="result of w2"] .chain p')?.textContent`)
	assert.True(t, strings.Contains(got, "the client of w2"), "after the jump to the end of the chain: %q", got)
}
