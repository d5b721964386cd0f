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

func TestWhoStandsWhereIsDrawn(t *testing.T) {
	t.Parallel()
	file := writeRecording(t, crowded())
	p := openPage(t, startViz(t, "-replay", file).URL)
	p.until(t, "window.listwatch?.player.head === %d", len(crowded()))
	p.seek(t, len(crowded()))
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
