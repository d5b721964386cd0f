//go:build !race

package viz

import (
	"fmt"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

// toldStage has a player, whose stage records the start of each hop, and a log of requests with their consequences.
const toldStage = `
	var performance = { now: () => player.clock };
	var fold = page.fold.newFold(twin), seen = [], log = [], none = () => {}, elsewhere = "configmaps", clocks = {};
	var change = (r) => page.hops.changeOf(r);
	var motion = {
		travels: (r) => Boolean(r.key) && r.resource === "pods", matches: () => false, under: () => false, pass: none,
		plan: (list) => ({ ms: 200, moves: [{ change: change(list[0]) }] }), land: none,
		launch: ({ moves: [{ change }] }, at) => { seen.at(-1)?.[0] === change || seen.push([change, at]); },
	};
	var own = new page.own.Own({ viewers: "kubectl|Mozilla", demo: "demo", writes: ["POST", "PUT"],
		here: (r) => r.resource === "pods", yours: (r) => r.subject !== "l9",
		station: (r) => fold.infos.get(r.point).station });
	var tape = new page.tape.Tape(fold, null);
	var player = new page.player.Player(fold, { motion, own, resource: () => "pods", applied: none, jumped: none,
		grounded: none, froze: none, trouble: (e) => { throw e; } }, tape, page.fold.newState());
	player.reset(tape, page.fold.newState(), false);
	var write = (agent, key, { path = "/api/v1/pods", resource = "pods", method = "POST", first = 0 } = {}) => {
		const rv = String(100 + log.length), from = log.length + 1;
		const of = (point, more = {}) => ({ point, resource, key: "/registry/" + resource + "/" + key, rv, ...more });
		const list = [{ point: "RequestReceived", texts: { agent, path, method } },
			of("TxnCommitted", { args: [from] }),
			of("RingAppend", { args: [0, 1, 10, 1] }), of("IndexerUpdated", { subject: "informer", args: [1] }),
			of("HandlerReturned", { subject: "l1" }), of("Distributed", { subject: "informer", args: [2] }),
			of("HandlerReturned", { subject: "l9" }), of("HandlerReturned", { subject: "l2" })];
		return list.map((r, i) => { log.push(r); return { ...r, seq: from + i, t: (from + i) * 1e6 }; });
	};
	var send = (...lists) => player.arrived(lists.flat());
	var run = (ms) => { for (let at = 0; at < ms; at += 20) player.tick(20); };
	var names = () => seen.map(([change]) => change.split(/[ /]/).at(-1)).join(" ");
	true`

// onToldStage runs a script on toldStage, and returns the script's value.
func onToldStage(t *testing.T, script string) string {
	t.Helper()
	return run[string](t, toldEngine(t), script)
}

// toldEngine returns an engine with toldStage.
func toldEngine(t *testing.T) *engine {
	t.Helper()
	e := newEngine(t, map[string]string{"player": "timeline/player.js", "own": "timeline/own.js", "tape": "log/tape.js",
		"fold": "log/fold.js", "hops": "stage/hops.js"})
	run[bool](t, e, `var twin = `+points(t)+`; `+toldStage)
	return e
}

// TestTheViewersOwnChangeGoesFirst: a viewer's change moves at once, although the demo's moves and three others wait.
func TestTheViewersOwnChangeGoesFirst(t *testing.T) {
	for _, agent := range []string{"kubectl", "Mozilla"} {
		got := onToldStage(t, fmt.Sprintf(`send(write("demo", "web-1"));
			run(60);
			send(write("", "a"), write("", "b"), write("", "c"), write(%q, "mine"));
			const asked = player.clock;
			run(3000);
			names() + ", after " + (seen[1][1] - asked) + ", " + [own.star.key, own.star.state, own.star.ms,
				own.star.came.size].join(" ")`, agent))
		assert.Equal(t, "web-1 mine, after 20, mine arrived 7 6", got, "a write by %s", agent)
	}
}

// TestOthersChangesAreNotTheViewers: a program's change, a lease, a status and a read do not count as a viewer's. A
// viewer's change of a resource that is not on stage counts as elsewhere.
func TestOthersChangesAreNotTheViewers(t *testing.T) {
	for _, written := range []string{`"kubectls", "mine"`, `"kubectl", "mine", { path: "/apis/x/leases/mine" }`,
		`"kubectl", "mine", { path: "/api/v1/pods/mine/status" }`, `"kubectl", "mine", { method: "GET" }`} {
		got := onToldStage(t, `send(write("", "a"), write(`+written+`)); run(5000);
			names() + " " + (own.star ?? "none")`)
		assert.Equal(t, "a mine none", got, written)
	}
	assert.Equal(t, "a, configmaps elsewhere", onToldStage(t, `send(write("", "a"), write("kubectl", "mine",
		{ resource: "configmaps" })); run(5000); names() + ", " + own.elsewhere.resource + " " + own.elsewhere.state`))
}

// TestFiveOfTheViewersChangesAreToldEach makes seven changes at once. Five are shown one by one, in order; two are only
// counted. A consequence of the fifth comes after it.
func TestFiveOfTheViewersChangesAreToldEach(t *testing.T) {
	got := onToldStage(t, `send(...["a", "b", "c", "d", "e", "f", "g"].map((key) => write("kubectl", key)));
		run(100);
		send(write("scheduler", "e"));
		run(9000);
		names() + ", " + own.summed.size + " more, " + [...own.theirs.values()]`)
	assert.Equal(t, "a b c d e e, 2 more, scheduler", got)
}

// TestTheViewersChangeIsShownBeforeItsConsequence sends records of a viewer's change (v) and of the scheduler's change
// to the same object (s), out of order: each is recorded after its write to etcd. Both must be shown, viewer's first.
func TestTheViewersChangeIsShownBeforeItsConsequence(t *testing.T) {
	for name, order := range map[string]string{
		"the scheduler's commit is recorded first": "v0 s0 s1 v1 v2 v3 v4 v5 v6 v7 s2 s3 s4 s5 s6 s7",
		"its event is recorded before its commit":  "v0 v1 v2 v3 v4 v5 v6 s0 s2 | s1 v7 s3 s4 s5 s6 s7",
	} {
		got := onToldStage(t, `const lists = { v: write("kubectl", "a"), s: write("scheduler", "a") };
			const order = "`+order+`", all = order.replace("| ", "").split(" "), nth = (name) => all.indexOf(name) + 1;
			for (const part of order.split(" | ")) {
				send(part.split(" ").map((name) => {
					const r = lists[name[0]][name[1]], seq = nth(name);
					const args = r.point === "TxnCommitted" ? [nth(name[0] + "0")] : r.args;
					return { ...r, seq, t: seq * 1e6, args };
				}));
				run(2200);
			}
			run(9000);
			names() + ", " + [...own.theirs.values()]`)
		assert.Equal(t, "a a, scheduler", got, name)
	}
}

// TestTheDemoIsNeverBehindByMoreThanItsOneChange writes others' changes while the demo's change moves. Neither they nor
// their requests are shown; the demo's next change is.
func TestTheDemoIsNeverBehindByMoreThanItsOneChange(t *testing.T) {
	got := onToldStage(t, `var longest = 0, told = motion.plan, asked = 0;
		motion.travels = (r) => r.point === "RequestReceived" || Boolean(r.key) && r.resource === "pods";
		motion.plan = (list) => { asked += list[0].point === "RequestReceived"; return told(list); };
		for (const step of [["demo", "web-1"], ["scheduler", "web-1"], ["kubelet", "web-1"], ["demo", "web-2"]]) {
			send(write(...step));
			for (let at = 0; at < (step[0] === "kubelet" ? 6000 : 40); at += 20) {
				player.tick(20);
				longest = Math.max(longest, player.lag());
			}
		}
		run(3000);
		names().trim().replace(/ +/g, " ") + ", asked " + asked
			+ ", behind for less than " + Math.ceil(longest / 500) * 500`)
	assert.Equal(t, "web-1 web-2, asked 2, behind for less than 1000", got)
}

// TestAChangeThatComesWithASumIsTheViewers sends more records than a viewer can follow. The feed keeps those of the
// viewer's change, which travels the rest of its way with the next sum.
func TestAChangeThatComesWithASumIsTheViewers(t *testing.T) {
	got := onToldStage(t, `send(write("demo", "web-1"));
		run(3000);
		const [others, mine] = [write("", "a"), write("kubectl", "mine")];
		const at = (seq, kept) => {
			const state = page.fold.newState();
			fold.apply(state, log.slice(0, seq).map((r, i) => ({ ...r, seq: i + 1, t: (i + 1) * 1e6 })));
			player.replaced(state, kept);
			const { star } = own;
			return [star.key, star.state, star.ms, star.came.size, mine.filter((r) => own.its(r)).length].join(" ");
		};
		[at(others.at(-1).seq + 4, mine.slice(0, 4)), at(log.length, mine.slice(4))].join(", ") + ", " + names()`)
	assert.Equal(t, "mine waits 3 4 7, mine arrived 7 6 7, web-1", got)
}

// TestAJumpClearsTheViewersChange checks that the line about the change disappears: it belongs to another moment.
func TestAJumpClearsTheViewersChange(t *testing.T) {
	assert.Equal(t, "travels none", onToldStage(t, `send(write("kubectl", "a"));
		run(100);
		const before = own.star.state;
		player.forget();
		before + " " + (own.star ?? "none")`))
}

// TestAWayIsInTheOrderOfThePath gives wayOf the two sides of a hand-over in the wrong order. It must sort them.
func TestAWayIsInTheOrderOfThePath(t *testing.T) {
	e := newEngine(t, map[string]string{"own": "timeline/own.js"})
	got := run[string](t, e, `page.own.wayOf({
		t: 1e6, ms: 9, came: new Map([["http", 1e6], ["etcd3", 3e6], ["etcd", 4e6],
		["handler", 8e6]]) }, ["http", "etcd", "etcd3", "handler"]).join(" ")`)
	assert.Equal(t, "http,0 etcd,2 etcd3,0 handler,7", got)
}

// TestASentenceBesideATokenIsShort checks that a sentence has twelve words at most, because the token moves meanwhile.
func TestASentenceBesideATokenIsShort(t *testing.T) {
	e := newEngine(t, map[string]string{"routes": "stage/routes.js"})
	for _, name := range run[[]string](t, e, `Object.keys(page.routes.routes)`) {
		point, known := probe.PointNamed(name)
		require.True(t, known, name)
		r := probe.Record{Point: point, Subject: "informer", Type: "MODIFIED", Key: "/registry/pods/default/a", RV: 41,
			Args: [4]int{3, 100, 2, 1}, Texts: probe.TextsOf(point, "GET", "/api/v1/pods", "", "kubectl", "")}
		said, _, _ := strings.Cut(r.Sentence(), ";")                                // log/fold.js does the same
		takesOff := point == probe.CacheReplaced || point == probe.DispatchFinished // nothing moves
		assert.True(t, len(strings.Fields(said)) <= 12 || takesOff, "%s says too much: %s", name, said)
	}
}

// TestAStoryOfACrowdKeepsToItsTime plays 900 opening streams in 4.5 s. It must show fewer, evenly, up to the last.
func TestAStoryOfACrowdKeepsToItsTime(t *testing.T) {
	e := toldEngine(t)
	run[string](t, e, `
		var said = [];
		motion.travels = (r) => r.point === "WireOpened";
		motion.plan = (list) => ({ ms: 300, moves: [{ change: list[0].seq }] });
		motion.launch = ({ moves: [{ change }] }, at) => { said.push([change, at]); };
		player.reset(tape, page.fold.newState(), true);
		tape.put(Array.from({ length: 1800 }, (_, i) => ({ seq: i + 1, t: (i + 1) * 1e6, resource: "pods",
			point: i % 2 ? "WireOpened" : "WatcherAdded", subject: "w" + (i >> 1) })));
		player.head = 1800;
		player.playTo(1800, { within: 4500 }); ""`) // begins after this script
	got := run[string](t, e, `run(5000);
		const half = said.findIndex(([change]) => change > 900);
		const even = Math.abs(said[half][1] - 2250) < 300;
		[player.mode, player.cursor, even, said.length > 20 && said.length < 90, said.at(-1)[0]].join(" ")`)
	assert.Equal(t, "frozen 1800 true true 1800", got)
}

// TestASentenceNamesOnlyWhatIsDrawn: without full detail, a token's sentence names no part that is not drawn.
func TestASentenceNamesOnlyWhatIsDrawn(t *testing.T) {
	e := newEngine(t, map[string]string{"routes": "stage/routes.js", "fold": "log/fold.js"})
	got := run[string](t, e, `var { infos } = page.fold.newFold(`+points(t)+`);
		Object.keys(page.routes.routes).map((name) => page.fold.clause(infos.get(name), true).says)
			.filter((says) => /incoming|WatchServer| input| result|local store|dispatcher|pending|Chan/.test(says))
			.join()`)
	assert.Equal(t, "", got)
}
