package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"listwatch/internal/check/compat/program"
)

// within is how long an event may take from the program to the page's tape: a second, and some more for a program that
// carries the race detector.
func within() time.Duration {
	if program.RaceEnabled {
		return 5 * time.Second
	}
	return time.Second
}

// stage is what the page says of itself, in the names outside checks rely on.
type stage struct {
	Seq       string
	Mode      string
	Stations  []string
	Queues    []stageQueue
	Watchers  []string
	Listeners []string
	Ring      struct{ Start, End, Capacity, Oldest, Newest string }
}

// stageQueue is one drawn channel, and the watcher or listener it belongs to, if it does to one.
type stageQueue struct {
	Name, Len, Cap, Watcher, Listener string
}

const readStage = `(() => {
	const all = (name) => $$("[" + name + "]");
	const ring = $("[data-station=ring]");
	const owner = (el, name) => el.closest("[" + name + "]")?.getAttribute(name) ?? "";
	return {
		Seq: document.body.getAttribute("data-seq"), Mode: document.body.getAttribute("data-mode"),
		Stations: all("data-station").map((el) => el.getAttribute("data-station")),
		Queues: all("data-queue").map((el) => ({
			Name: el.getAttribute("data-queue"), Len: el.getAttribute("data-len"), Cap: el.getAttribute("data-cap"),
			Watcher: owner(el, "data-watcher"), Listener: owner(el, "data-listener"),
		})),
		Watchers: all("data-watcher").map((el) => el.getAttribute("data-watcher")),
		Listeners: all("data-listener").map((el) => el.getAttribute("data-listener")),
		Ring: {
			Start: ring?.getAttribute("data-start"), End: ring?.getAttribute("data-end"),
			Capacity: ring?.getAttribute("data-capacity"),
			Oldest: ring?.getAttribute("data-oldest-rv"), Newest: ring?.getAttribute("data-newest-rv"),
		},
	};
})()`

func (p *page) stage(t testing.TB) stage { return evaluate[stage](t, p, readStage) }

// live waits until the page's feed is open, and the page shows the newest record there was when it was asked. The
// server draws the first picture, so the attributes alone do not prove that the page is awake.
func (p *page) live(t testing.TB, v *viz) {
	t.Helper()
	var snapshot struct{ Seq uint64 }
	v.Get(t, "/viz/snapshot", &snapshot)
	program.Eventually(t, patience, func() (bool, string) {
		feed := evaluate[string](t, p, `$("#mode").dataset.state`)
		seq := p.stage(t).Seq
		shown, err := strconv.ParseUint(seq, 10, 64)
		holds := feed == "live" && err == nil && shown >= snapshot.Seq
		return holds, fmt.Sprintf("the feed is %s, the page shows seq %q, the log is at %d", feed, seq, snapshot.Seq)
	})
}

// observe makes the page note when each object first appears at each station, in its table of records, and everything
// that is said there.
func (p *page) observe(t *testing.T) {
	t.Helper()
	p.run(t, `const seen = window.seen = {};
		const said = window.said = new Set();
		const body = $("#records");
		const look = () => {
			for (const tr of body.rows) {
				const [station, key] = [tr.cells[2].textContent, tr.cells[5].textContent];
				(seen[key] ??= {})[station] ??= Date.now();
				said.add(tr.textContent);
			}
		};
		new MutationObserver(look).observe(body, { subtree: true, childList: true, characterData: true });
		look();`)
}

// seen returns when the object was first seen at each station.
func (p *page) seen(t *testing.T, key string) map[string]time.Time {
	t.Helper()
	seen := map[string]time.Time{}
	for station, ms := range evaluate[map[string]float64](t, p, fmt.Sprintf("window.seen[%q] ?? {}", key)) {
		seen[station] = time.UnixMilli(int64(ms))
	}
	return seen
}

func TestTheStageCarriesTheNamesOutsidersRelyOn(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false")
	k := kubectlFor(t, v)
	watch := program.Start(t, k.Command("get", "pods", "-w"))
	p := openPage(t, v.URL)
	create(t, k, podManifest("a"))
	program.Eventually(t, patience, func() (bool, string) {
		return strings.Contains(watch.Stdout.String(), "Running"), watch.Stdout.String()
	})
	p.live(t, v)
	s := p.stage(t)

	if s.Mode != "live" {
		t.Errorf("data-mode is %q, want live", s.Mode)
	}
	for _, station := range []string{
		"http", "etcd", "etcd3", "ring", "store", "incoming", "dispatch", "watcher", "wire",
		"reflector", "fifo", "indexer", "processor", "listener", "handler", "workqueue",
	} {
		if !slices.Contains(s.Stations, station) {
			t.Errorf("no element has data-station=%q", station)
		}
	}
	queues := map[string]bool{}
	for _, q := range s.Queues {
		queues[q.Name] = true
		checkQueue(t, q)
	}
	for _, name := range []string{
		"etcd3-incoming", "etcd3-result", "incoming", "input", "result", "add", "pending", "next", "fifo", "workqueue",
	} {
		if !queues[name] {
			t.Errorf("no element has data-queue=%q", name)
		}
	}
	checkRing(t, s)
	if slices.Sort(s.Watchers); len(slices.Compact(s.Watchers)) < 3 { // the informer, a kubelet, kubectl
		t.Errorf("watchers %q, want three at least", s.Watchers)
	}
}

// checkQueue expects numbers, and the capacities that are part of the machinery.
func checkQueue(t *testing.T, q stageQueue) {
	t.Helper()
	length, lenErr := strconv.Atoi(q.Len)
	capacity, capErr := strconv.Atoi(q.Cap)
	if lenErr != nil || capErr != nil || length < 0 || capacity < 0 {
		t.Errorf("queue %s has data-len=%q data-cap=%q, want numbers", q.Name, q.Len, q.Cap)
	}
	switch q.Name {
	case "etcd3-incoming", "etcd3-result", "incoming":
		if capacity != 100 {
			t.Errorf("queue %s has capacity %d, want 100", q.Name, capacity)
		}
	case "input", "result":
		if q.Watcher == "" || capacity < 10 || capacity > 1000 {
			t.Errorf("queue %s of watcher %q has capacity %d, want 10 to 1000", q.Name, q.Watcher, capacity)
		}
	case "add", "next":
		if q.Listener == "" || capacity != 0 {
			t.Errorf("queue %s of listener %q has capacity %d, want 0", q.Name, q.Listener, capacity)
		}
	case "pending":
		if q.Listener == "" {
			t.Errorf("queue pending belongs to no listener")
		}
	}
}

// checkRing expects the ring's invariants.
func checkRing(t *testing.T, s stage) {
	t.Helper()
	number := func(name, value string) uint64 {
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			t.Errorf("the ring's %s is %q, want a number", name, value)
		}
		return n
	}
	first, end, capacity := number("data-start", s.Ring.Start), number("data-end", s.Ring.End), number("data-capacity",
		s.Ring.Capacity)
	oldest, newest := number("data-oldest-rv", s.Ring.Oldest), number("data-newest-rv", s.Ring.Newest)
	if first > end || end-first > capacity || capacity < 100 {
		t.Errorf("the ring holds [%d, %d) of %d", first, end, capacity)
	}
	if end == 0 {
		t.Error("the ring is empty although a pod was created")
	}
	if oldest > newest || newest == 0 {
		t.Errorf("the ring serves resource versions %d to %d", oldest, newest)
	}
}

// readWithin is how far the cursor may be behind the tape: as long as a reader has patience.
const readWithin = 3 * time.Second

func TestAPodsTokenReachesTheHandlerAtReadingPace(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false", "-controllers=false")
	k := kubectlFor(t, v)
	create(t, k, podManifest("warm-up")) // kubectl's discovery is not what is measured
	p := openPage(t, v.URL)
	p.live(t, v)
	p.observe(t)
	p.run(t, `const { player } = listwatch;
		let seq = player.head + 1;
		const look = () => {
			for (; seq <= player.head; seq++) {
				const r = player.tape.get(seq);
				if (r?.point === "HandlerCalled" && r.key === "default/a") return (window.taped = Date.now());
			}
			requestAnimationFrame(look);
		};
		look();`)
	create(t, k, podManifest("a"))
	created := time.Now()
	program.Eventually(t, 10*time.Second, func() (bool, string) {
		seen := p.seen(t, "default/a")
		return !seen["handler"].IsZero(), fmt.Sprint(seen)
	})
	seen := p.seen(t, "default/a")
	taped := time.UnixMilli(int64(evaluate[float64](t, p, "window.taped")))
	t.Logf("kubectl's answer to the handler's record: %v on the tape, %v on screen", taped.Sub(created),
		seen["handler"].Sub(created))
	if took := taped.Sub(created); took > within() {
		t.Errorf("the page has the handler's record %v after kubectl had its answer, want %v at most", took, within())
	}
	if took := seen["handler"].Sub(taped); took > readWithin {
		t.Errorf("default/a is at the handler %v after its record came, want %v at most", took, readWithin)
	}
	for _, station := range []string{
		"etcd", "etcd3", "ring", "store", "incoming", "dispatch", "watcher", "wire",
		"reflector", "fifo", "indexer", "processor", "listener",
	} {
		if seen[station].IsZero() {
			t.Errorf("default/a was not seen at %s on its way: %v", station, seen)
		}
	}
}
