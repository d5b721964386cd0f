package e2e

import (
	"fmt"
	"slices"
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

// crowded is the recording of a moment at which nearly every goroutine is held up: by a client that does not read, by a
// full channel of the etcd3 watch, and by a handler that does not return.
func crowded() reel {
	r := stalled()
	r.add(probe.ListenerAdded, "slow", 9)
	r.add(probe.HandlerCalled, "slow", 9)
	r.add(probe.PendingPushed, "slow", 9, 1, 1024)
	r.add(probe.PendingPushed, "slow", 9, 2, 1024)
	r.add(probe.ListenerAdded, "idle", 9)
	r.add(probe.AddBlocked, "idle", 9)
	r.add(probe.Etcd3IncomingBlocked, "etcd3-1", 9)
	r.add(probe.EtcdLookedAt, "", 0, 40, 1000, 1) // refuses writes
	r[len(r)-1].Resource, r[len(r)-1].Key, r[len(r)-1].Type = "", "", ""
	r.add(probe.RingAppend, "cacher", 9, 0, 1, 100, 9)
	return r
}

// drawing is what the stage shows of goroutines, channels and locks.
type drawing struct {
	Does  map[string]string // by lane and goroutine
	Slots map[string]int    // by lane and queue
	Posts []string          // who stands by name beside a queue
	Locks map[string]string
}

const readDrawing = `(() => {
	const of = (list) => Object.fromEntries(list);
	const lane = (el) => { const d = el.closest(".lane")?.dataset ?? {};
		return d.watcher ?? d.listener ?? d.handlerOf ?? ""; };
	const all = (selector) => $$(".scenery " + selector);
	return {
		Does: of(all("[data-goroutine]").map((el) => [lane(el) + " " + el.dataset.goroutine, el.dataset.does ?? ""])),
		Slots: of(all("[data-queue]").map((el) => [(lane(el) + " " + el.dataset.queue).trim(),
			el.querySelectorAll(".slot").length])),
		Posts: all(".post.held").map((el) => el.querySelector("text").textContent),
		Locks: of(all("[data-lock]").map((el) => [el.dataset.lock, el.dataset.state])),
	};
})()`

// TestWhoStandsWhereIsDrawn goes to where the server half stands still: the channels that are full are marked, and the
// page says who waits for whom up to the client, as viz/why_test.go has it, and leads there. Then to where all others
// stand still, too.
func TestWhoStandsWhereIsDrawn(t *testing.T) {
	t.Parallel()
	p := openPage(t, startViz(t, "-replay", writeRecording(t, crowded())).URL)
	p.until(t, "window.listwatch?.player.head === %d", len(crowded()))
	const refuses = `$('[data-station="etcd"]').classList.contains("refuses") + " " +
		($text('[data-text="etcd.full"]') === "no writes")`
	p.seek(t, len(stalled()))
	p.becomes(t, "etcd3-result incoming input result",
		`$$(".pipe.blocked").map((el) => el.dataset.queue).sort().join(" ")`)
	p.is(t, "false false", "etcd refuses writes", refuses)
	p.run(t, `$('[data-station=incoming] [data-queue=incoming]').closest('[tabindex]').focus()`)
	p.press(t, "b")
	p.becomes(t, "incoming of cacher → input of w2 → result of w2",
		`$$("#leaf .chain.full button.place").map((el) => el.textContent).join(" → ")`)
	p.run(t, `$("#leaf .chain li:last-child button.place").click()`)
	p.until(t, `$('#leaf .leaf.blocked[data-title="result of w2"] .chain p')?.textContent.includes("the client of w2")`)
	p.strike(t, "Escape")
	p.seek(t, len(crowded()))
	p.becomes(t, "true true", refuses)
	want := map[string]string{
		"w1 process": "receive", "w1 serve": "receive", "w2 process": "send", "w2 serve": "send",
		"slow run": "run", "slow offer": "send", "slow pop": "receive", "slow distribute": "",
		"idle run": "receive", "idle offer": "", "idle pop": "receive", "idle distribute": "send",
	}
	var seen drawing
	program.Eventually(t, patience, func() (bool, string) {
		seen = evaluate[drawing](t, p, readDrawing)
		return seen.Locks["store"] == "held", fmt.Sprintf("%+v", seen)
	})
	for who, does := range want {
		if got, ok := seen.Does[who]; !ok || got != does {
			t.Errorf("%s does %q, want %q", who, got, does)
		}
	}
	// Ten slots are drawn one by one, a hundred as a gauge.
	for queue, slots := range map[string]int{"w2 input": 10, "w2 result": 10, "incoming": 0, "etcd3-incoming": 0,
		"etcd3-result": 0, "slow pending": 0} {
		if got, ok := seen.Slots[queue]; !ok || got != slots {
			t.Errorf("%s is drawn with %d slots, want %d", queue, got, slots)
		}
	}
	slices.Sort(seen.Posts)
	if got := strings.Join(seen.Posts, ", "); got != "⇥ collectEvent…, ⇥ startWatching" {
		t.Errorf("beside the channels of the etcd3 watch stand %q", got)
	}
	assert.True(t, seen.Locks["dispatch"] == "free" && seen.Locks["fifo"] == "free",
		"locks: %v, want only that of the store held", seen.Locks)
	p.seek(t, len(crowded())-1)
	program.Eventually(t, patience, func() (bool, string) { // one step back no goroutine held it
		seen = evaluate[drawing](t, p, readDrawing)
		return seen.Locks["store"] == "free", fmt.Sprintf("%+v", seen.Locks)
	})
}
