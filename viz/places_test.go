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
		kind: "watcher", opened: i + 1, counts: {}, queues: {}, texts: { WireOpened: "client-" + (n - i) + "/1.0" },
	})])) });
	var scene = {
		informer: "informer", told: null,
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
	assert.Equal(t, got, "w11 0 true 970,62, w10 1 true 970,99, w9 2 true 970,136; 8")
}
