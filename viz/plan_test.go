//go:build !race

package viz

import (
	"fmt"
	"testing"

	"listwatch/internal/check/assert"
)

// crowd is a picture of n watchers that counts how often it is looked at, and the scene that has it.
const crowd = `
	var looks = 0, counted = (object) => new Proxy(object, { get: (of, name) => (looks++, of[name]) });
	var picture = (n) => ({ subjects: Object.fromEntries(Array.from({ length: n }, (_, i) => ["w" + i, counted({
		kind: "watcher", opened: i + 1, counts: {}, queues: {},
		texts: { WireOpened: { agent: "client-" + (n - i) + "/1.0" } },
	})])) });
	var scene = {
		informer: "informer", story: null,
		geometry: { lane: { height: 37, room: 5 }, listen: { height: 41, room: 4 },
			boxes: { watcher: { X: 970, Y: 62 }, listener: { X: 352, Y: 332 }, handler: { X: 240, Y: 332 },
				workqueue: { X: 52, Y: 332 } } },
	}; true`

// TestAThousandLanesArePlacedInOneGo: what it takes to place lanes grows with their number, not with its square.
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
	assert.Equal(t, "w11 0 true 970,62, w10 1 true 970,99, w9 2 true 970,136; 8", got)
}

// TestTheLevelFollowsTheRate: above twenty changes a second they are a stream, until for two seconds there have
// been much fewer.
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

// TestAPlayerMovesTheCursorAtItsPace: a record every millisecond for a second, then nothing for ten, then one more.
func TestAPlayerMovesTheCursorAtItsPace(t *testing.T) {
	e := newEngine(t, map[string]string{"player": "timeline/player.js", "tape": "log/tape.js", "fold": "log/fold.js"})
	log, _ := newLog()
	points := ask(show(log), "GET", "/viz/points", "").Body.Bytes()
	got := run[string](t, e, `var seen = "", structuredClone = (value) => JSON.parse(JSON.stringify(value));
		var performance = { now: () => 0 };
		(async () => {
			const fold = page.fold.newFold(JSON.parse(`+quote(t, points)+`));
			const record = (seq, t) => ({ seq, t, point: "RingAppend", resource: "pods", args: [0, 1, 2, 3] });
			const tape = new page.tape.Tape(fold, null);
			let skipped = 0;
			const [none, never] = [() => {}, () => false];
			const motion = { travels: never, matches: never, under: never, pass: none };
			const player = new page.player.Player(fold, { motion, applied: none, jumped: none, froze: none,
				trouble: (e) => { seen = String(e); }, skipped: (ns) => (skipped += ns) },
				tape, page.fold.newState());
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
			for (const ms of [300, 200]) { // silence is cut to 400 ms
				player.tick(ms);
				cursors.push(player.cursor);
			}
			seen = [...cursors, Math.round(skipped / 1e6)].join(" ");
		})(); ""`)
	assert.Equal(t, "3 20 33 500 1000 1000 1001 9584", got+run[string](t, e, "seen"))
}
