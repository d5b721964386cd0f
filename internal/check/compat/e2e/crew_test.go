package e2e

import (
	"testing"

	"listwatch/internal/observe/probe"
)

// stalled returns the records of a server half with two watchers. w1's client reads; w2's does not. The records end
// when the etcd3 watch, too, waits for w2.
func stalled() (r reel) {
	fill := func(point probe.Point, subject string, n, size int) {
		for i := range n {
			r.add(point, subject, 100+i, i+1, size)
		}
	}
	r.add(probe.WatchChanOpened, "etcd3-1", 1)
	r.add(probe.WatcherAdded, "w1", 1, 10)
	r.add(probe.WatcherAdded, "w2", 1, 10)
	r.add(probe.ResultReceived, "w2", 7, 0, 10) // w2 can never send it
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

// crowded returns records after which nearly every goroutine is blocked: by a client that does not read, by a full
// channel of the etcd3 watch, or by a handler that does not return. etcd refuses writes.
func crowded() reel {
	r := stalled()
	r.add(probe.ListenerAdded, "slow", 9)
	r.add(probe.HandlerCalled, "slow", 9)
	r.add(probe.PendingPushed, "slow", 9, 1, 1024)
	r.add(probe.PendingPushed, "slow", 9, 2, 1024)
	r.add(probe.ListenerAdded, "idle", 9)
	r.add(probe.AddBlocked, "idle", 9)
	r.add(probe.Etcd3IncomingBlocked, "etcd3-1", 9)
	r.add(probe.EtcdLookedAt, "", 0, 40, 1000, 1) // etcd refuses writes
	r[len(r)-1].Resource, r[len(r)-1].Key, r[len(r)-1].Type = "", "", ""
	r.add(probe.RingAppend, "cacher", 9, 0, 1, 100, 9)
	return r
}

// crew returns the number of slots that the stage draws for some queues, and the names of blocked goroutines that it
// shows. A queue of ten has ten slots. A queue of a hundred is a gauge and has none.
const crew = `(() => {
	const laneOf = (el) => ((d) => d.watcher ?? d.listener ?? d.handlerOf ?? "")(el.closest(".lane")?.dataset ?? {});
	const all = (selector, of) => $$(".scenery " + selector).map((el) => [laneOf(el), of(el)].join(" ").trim());
	const slots = all("[data-queue]", (el) => el.dataset.queue + " " + el.querySelectorAll(".slot").length);
	const posts = all(".post.held", (el) => el.querySelector("text").textContent);
	const told = (list) => list.filter((each) => /^(w[12]|slow|idle|incoming|etcd3-\w+|⇥) /.test(each));
	return [slots, posts].map((list) => told(list).sort().join(", ")).join("; ");
})()`

// TestWhoStandsWhereIsDrawn goes to the record at which the server half is stalled. The page must mark the full
// channels, list the chain of waits down to the client, and open the chain's last place. Then the test goes to the
// record at which nearly all goroutines are blocked.
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
		`$$("#leaf .chain button.place").map((el) => el.textContent).join(" → ")`)
	p.run(t, `$("#leaf .chain li:last-child button.place").click()`)
	p.until(t, `$('#leaf .leaf.blocked[data-title="result of w2"] .chain')?.textContent.includes("its client to read")`)
	p.strike(t, "Escape")
	p.seek(t, len(crowded()))
	p.becomes(t, "true true", refuses)
	p.becomes(t, "etcd3-incoming 0, etcd3-result 0, idle add 0, idle next 0, idle pending 0, incoming 0, "+
		"slow add 0, slow next 0, slow pending 0, w1 input 10, w1 result 10, w2 input 10, w2 result 10; "+
		"⇥ collectEvent…, ⇥ startWatching", crew)
	locks := `$$(".scenery [data-lock]").map(({ dataset: { lock, state } }) => lock + " " + state).sort().join(", ")`
	p.becomes(t, "dispatch free, fifo free, store held", locks)
	p.seek(t, len(crowded())-1) // one record earlier, no goroutine held the store's lock
	p.becomes(t, "dispatch free, fifo free, store free", locks)
}
