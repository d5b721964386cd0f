//go:build !race

package viz

import (
	"encoding/json"
	"fmt"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/viz/stage"
)

// crowd is a picture of n watchers that counts its reads, and a scene around it.
const crowd = `
	var looks = 0, counted = (object) => new Proxy(object, { get: (of, name) => (looks++, of[name]) });
	var picture = (n) => ({ subjects: Object.fromEntries(Array.from({ length: n }, (_, i) => ["w" + i, counted({
		kind: "watcher", opened: i + 1, counts: {}, queues: {},
		texts: { WireOpened: { agent: "client-" + (n - i) + "/1.0" } },
	})])) });
	var scene = {
		informer: "informer", story: null, closed: new Map(),
		geometry: { lane: { height: 37, room: 5 }, listen: { height: 41, room: 4 },
			boxes: { watcher: { X: 970, Y: 62 }, listener: { X: 352, Y: 332 }, handler: { X: 240, Y: 332 },
				workqueue: { X: 52, Y: 332 } } },
	}; true`

// TestAThousandLanesArePlacedInOneGo checks that the work to place lanes grows with their number, not with its square.
func TestAThousandLanesArePlacedInOneGo(t *testing.T) {
	e := newEngine(t, map[string]string{"places": "stage/places.js"})
	run[bool](t, e, crowd)
	looks := func(n int) int {
		return run[int](t, e, fmt.Sprintf(`looks = 0; page.places.placesOf(scene, picture(%d)); looks`, n))
	}
	few, many := looks(100), looks(1000)
	assert.True(t, many <= 20*few, "a thousand lanes take %d looks at the picture, a hundred take %d", many, few)
	got := run[string](t, e, `(({ watchers: { lanes, hidden } }) => [...lanes.values()].slice(0, 3)
		.map(({ id, index, shown, at }) => [id, index, shown, at].join(" ")).join(", ") + "; " + hidden
		)(page.places.placesOf(scene, picture(12)))`)
	assert.Equal(t, "w11 0 true 970,210, w10 1 true 970,173, w9 2 true 970,136; 8", got, "the first is the lowest")
}

// TestAnEvictedWatcherKeepsItsPlace: its lane and its dot stay where they were; the client's next lane comes before it.
func TestAnEvictedWatcherKeepsItsPlace(t *testing.T) {
	e := newEngine(t, map[string]string{"places": "stage/places.js"})
	run[bool](t, e, crowd)
	got := run[string](t, e, `
		var { subjects } = picture(3), subject = { ...subjects.w1, counts: { WatcherForced: 1 } };
		var told = ({ watchers, crowd, n }) => [[...watchers.lanes.keys()], crowd.map(([id]) => id), n].join(" ");
		var places = () => told(page.places.placesOf(scene, { subjects }));
		var open = places();
		delete subjects.w1;
		scene.closed.set("w1", { subject });
		var closed = places();
		subjects.w3 = { ...subject, opened: 4, counts: {} };
		[open, closed, places()].join("; ")`)
	assert.Equal(t, "w2,w1,w0 w0,w1,w2 3; w2,w1,w0 w0,w1,w2 2; w2,w3,w1,w0 w0,w1,w2,w3 3", got)
}

// planned has stageOf, a stage with a lane for each client, and waysOf, the labels and ends of the moves for records.
const planned = `
	var scene = { ...page.ground.layouts(geometry).wide, geometry, plain: false, story: null, informer: "informer",
		serving: new Set(), closed: new Map(), ring: { capacity: 0, start: 0 }, resource: "" };
	var stageOf = (resource, ...clients) => {
		const subjects = Object.fromEntries(clients.map((name, i) => ["w" + i, { kind: "watcher", opened: i + 1,
			counts: {}, queues: {}, texts: { WireOpened: { agent: "listwatch-" + name } } }]));
		Object.assign(scene, { resource, places: page.places.placesOf(scene, { subjects }) });
		const here = (r) => [resource, undefined].includes(r.resource);
		const writes = ["POST", "PATCH"];
		return new page.plan.Planner(scene, { infos: twin.infos, here, matches: () => false, writes });
	};
	var seq = 0, spots = () => ({ http: scene.geometry.anchors.http, etcd: scene.geometry.anchors.etcd,
		...Object.fromEntries([...scene.places.watchers.lanes.values()].map(({ subject, at: [x, y] }) => [
			page.places.nameOf(subject), [x + geometry.guest.X + geometry.guest.W, y + geometry.laneAxis]])) });
	var placeOf = ([x, y]) => Object.entries(spots()).find(([, at]) => at[0] === x && at[1] === y)?.[0] ?? x + "," + y;
	var waysOf = (planner, ...records) => records.map((r) => {
		const plan = planner.plan([{ seq: ++seq, ...r }]);
		planner.land(plan);
		return plan.moves.map((m) => m.label + ": " + placeOf(m.points[0]) + " to " + placeOf([m.x, m.y])).join();
	}).join("; ");
	var asks = (agent, method, path) => ({
		point: "RequestReceived", texts: { agent: "listwatch-" + agent, method, path } });
	var answers = (agent, method, path) => ({
		...asks(agent, method, path), point: "RequestAnswered", args: [201] });
	var commits = (rv) => ({
		point: "TxnCommitted", resource: "pods", type: "MODIFIED", key: "/registry/pods/default/a", rv });
	true`

// TestAChangeThatBeginsAnotherLeavesAClientsBox lets the scheduler bind a pod, and a kubelet run it. Each request
// arrives at the API server, and its commit goes on from there. A write to another resource arrives there, too, but
// does not change this ring. Leases, and such writes by clients without a lane, are not drawn.
func TestAChangeThatBeginsAnotherLeavesAClientsBox(t *testing.T) {
	w := twinWith(t, map[string]string{"fold": "log/fold.js", "plan": "stage/plan.js", "places": "stage/places.js",
		"ground": "stage/ground.js"})
	run[bool](t, w.engine, `var geometry = JSON.parse(`+
		quote(t, require.Value(json.Marshal(stage.Geometry))(t))+`);`+planned)
	pod := "/api/v1/namespaces/default/pods/a"
	assert.Equal(t, "POST a: scheduler to http; a: http to etcd; PATCH a: kubelet-node-1 to http; a: http to etcd",
		run[string](t, w.engine, fmt.Sprintf(`(() => {
			const [bound, ran] = [["scheduler", "POST", %q], ["kubelet-node-1", "PATCH", %q]];
			return waysOf(stageOf("pods", "scheduler", "kubelet-node-1"), asks(...bound), commits("8"), asks(...ran),
				commits("9"));
		})()`, pod+"/binding", pod+"/status")))
	assert.Equal(t, "POST pods: replicaset-controller to http; ; ; ; ", run[string](t, w.engine, `(() => {
			const [mine, theirs] = ["replicaset-controller", "deployment-controller"];
			const made = [mine, "POST", "/api/v1/namespaces/default/pods"];
			const lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/a";
			return waysOf(stageOf("replicasets", mine), asks(...made), commits("8"), answers(...made),
				asks(mine, "PATCH", lease), asks(theirs, "POST", "/api/v1/namespaces/default/pods"));
		})()`))
}

// TestMoreEntriesAreNeverAShorterBar: a pipe without slots shows a chip for each entry, and thinner ones once full.
func TestMoreEntriesAreNeverAShorterBar(t *testing.T) {
	e := newEngine(t, map[string]string{"ground": "stage/ground.js"})
	got := run[[]string](t, e, `(() => {
		const { cellOf, drawnOf, stepOf } = page.ground;
		const wrong = [];
		for (const W of [58, 64, 104, 172, 194]) {
			const pipe = { X: 10, Y: 0, W, H: 16 };
			let was = 0;
			for (let len = 1; len <= 3000; len++) {
				const [n, step] = [drawnOf(pipe, len), stepOf(pipe, len, 0)];
				const [last] = cellOf(pipe, n - 1, true, step);
				const long = last + step / 2 - pipe.X;
				if (long < was - 1e-9 || long > W + 1e-9) wrong.push(W + ": " + len + " are " + long + " after " + was);
				if (len * 15 <= W && (n !== len || step !== 15)) wrong.push(W + ": " + len + " have no chip each");
				was = long;
			}
		}
		return wrong;
	})()`)
	assert.True(t, len(got) == 0, "%q", got[:min(len(got), 5)])
}

// TestTheLevelFollowsTheRate: over twenty changes a second are a stream, until the rate has been low for two seconds.
func TestTheLevelFollowsTheRate(t *testing.T) {
	e := newEngine(t, map[string]string{"pace": "timeline/pace.js"})
	got := run[string](t, e, `(() => {
		const pace = new page.pace.Pace({});
		return [[5, 0], [21, 1], [15, 100], [18, 5000], [10, 6000], [10, 7000], [15, 7900], [10, 9000], [10, 12000],
			[9000, 12100], [0, 12200], [0, 14300]].map(([rate, now]) => {
				pace.clock = 1e9 + now;
				return pace.streams(rate) ? 3 : 0;
			}).join(" ");
	})()`)
	assert.Equal(t, "0 3 3 3 3 3 3 3 0 3 3 0", got)
}

// TestAPlayerMovesTheCursorAtItsPace plays a second of records at several speeds, and a silence, which is cut short.
func TestAPlayerMovesTheCursorAtItsPace(t *testing.T) {
	e := newEngine(t, map[string]string{"player": "timeline/player.js", "tape": "log/tape.js", "fold": "log/fold.js"})
	got := run[string](t, e, `var seen = "";
		var performance = { now: () => 0 };
		(async () => {
			const fold = page.fold.newFold(`+points(t)+`);
			const record = (seq, t) => ({ seq, t, point: "RingAppend", resource: "pods", args: [0, 1, 2, 3] });
			const tape = new page.tape.Tape(fold, null);
			const [none, never] = [() => {}, () => false];
			const motion = { travels: never, matches: never, under: never, pass: none };
			const player = new page.player.Player(fold, { motion, applied: none, jumped: none, froze: none,
				trouble: (e) => { seen = String(e); } }, tape, page.fold.newState());
			player.reset(tape, page.fold.newState(), true);
			tape.put([...Array.from({ length: 1000 }, (_, i) => record(i + 1, (i + 1) * 1e6)), record(1001, 11e9)]);
			player.head = 1001;
			const cursors = [];
			for (const [speed, ...ms] of [[0.001, 1000, 1000, 1000], [0.1, 100, 100], [1, 16, 17],
				[10, 50], [1, 1000, 16]]) {
				player.speed = speed;
				await player.seek(0);
				await player.play();
				for (const each of ms) player.tick(each);
				cursors.push(player.cursor);
			}
			for (const ms of [700, 400]) { // the silence is cut to a second
				player.tick(ms);
				cursors.push(player.cursor);
			}
			seen = cursors.join(" ");
		})(); ""`)
	assert.Equal(t, "3 20 33 500 1000 1000 1001", got+run[string](t, e, "seen"))
}
