package e2e

import (
	"fmt"
	"strings"
	"testing"

	"listwatch/internal/check/compat/program"
)

// live waits until the page's feed is open, and the page shows the newest record there was when it was asked. The
// server draws the first picture, so the attributes alone do not prove that the page is awake.
func (p *page) live(t testing.TB, v *viz) {
	t.Helper()
	p.until(t, `$("#mode").dataset.state === "live" && Number(document.body.dataset.seq) >= %d`, v.seq(t))
}

// misnamed looks for the names that outside checks rely on: what is missing of them, and what is not as it must be.
const misnamed = `(() => {
	const found = [];
	const expect = (holds, what) => holds || found.push(what);
	const number = (text) => (/^\d+$/.test(text) ? Number(text) : NaN);
	const owner = (el, name) => el.closest("[data-" + name + "]")?.dataset[name];
	expect(document.body.dataset.mode === "live", "data-mode is " + document.body.dataset.mode);
	for (const station of ["http", "etcd", "etcd3", "ring", "store", "incoming", "dispatch", "watcher", "wire",
		"reflector",
		"fifo", "indexer", "processor", "listener", "handler", "workqueue"]) {
		expect($("[data-station=" + station + "]"), "no station " + station);
	}
	const capacities = { "etcd3-incoming": [100, 100], "etcd3-result": [100, 100], incoming: [100, 100],
		input: [10, 1000, "watcher"], result: [10, 1000, "watcher"], add: [0, 0, "listener"], next: [0, 0, "listener"],
		pending: [0, Infinity, "listener"], fifo: [0, Infinity], workqueue: [0, Infinity] };
	for (const name of Object.keys(capacities)) expect($("[data-queue=" + name + "]"), "no queue " + name);
	for (const el of $$("[data-queue]")) {
		const { queue, len, cap } = el.dataset;
		const [least, most, of] = capacities[queue] ?? [0, Infinity];
		const fits = number(len) >= 0 && number(cap) >= least && number(cap) <= most && (!of || owner(el, of));
		expect(fits, queue + " has " + len + " of " + cap + ", of " + (of && owner(el, of)));
	}
	const ring = $("[data-station=ring]").dataset;
	const [start, end, capacity, oldest, newest] = ["start", "end", "capacity", "oldestRv", "newestRv"]
		.map((name) => number(ring[name]));
	expect(start <= end && end - start <= capacity && capacity >= 100 && end > 0, "ring " + [start, end, capacity]);
	expect(oldest <= newest && newest > 0, "the ring serves versions " + oldest + " to " + newest);
	return found;
})()`

func TestTheStageCarriesTheNamesOutsidersRelyOn(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false")
	k := kubectlFor(t, v)
	p := openPage(t, v.URL)
	p.live(t, v)
	const watchers = `new Set($$("[data-watcher]").map((el) => el.dataset.watcher)).size`
	p.until(t, watchers+" >= 4") // the informer's, the scheduler's, and one for each kubelet
	before := evaluate[int](t, p, watchers)
	watch := program.Start(t, k.Command("get", "pods", "-w"))
	p.becomes(t, fmt.Sprint(before+1), watchers)
	create(t, k, podManifest("a"))
	program.Eventually(t, patience, func() (bool, string) {
		return strings.Contains(watch.Stdout.String(), "Running"), watch.Stdout.String()
	})
	p.live(t, v)
	p.none(t, "the names", misnamed)
	watch.Interrupt(t)
	watch.ExitCode(t, program.EndsWithin)
	p.becomes(t, fmt.Sprint(before), watchers)
}
