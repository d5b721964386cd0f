//go:build full

package e2e

import (
	"fmt"
	"path/filepath"
	"testing"
)

// view is a window in which no two texts may collide.
type view struct {
	look
	scale  float64 // device pixels per CSS pixel
	before string  // the button to press before the check, and again after it
}

var views = []view{
	{look{"1280x720", 1280, 720, "light", "reduce"}, 1, ""},
	{look{"390x844", 390, 844, "light", "reduce"}, 1, ""},
	{look{"1440x900", 1440, 900, "dark", "reduce"}, 1, ""},
	{look{"presenter", 1280, 720, "light", "reduce"}, 1, "#presenter"},
	{look{"1920x1080", 1920, 1080, "light", "reduce"}, 1, ""},
	{look{"200 %", 640, 360, "light", "reduce"}, 2, ""},
	{look{"all", 1280, 720, "dark", "reduce"}, 1, "#detail"},
}

// collisions draws the stage with names of 63 characters and versions of seven digits, and returns the texts that
// overlap or run over an edge. The names of tokens are exempt: the code that draws them keeps them apart.
const collisions = `(async () => {
	const { scene } = listwatch.stage;
	const begin = "a-name-as-long-as-a-label-may-be-and-not-one-letter-longer-";
	const long = (name) => begin.padEnd(63 - name.length, "x").slice(0, 63 - name.length) + name;
	const late = (rv) => (rv === "0" ? rv : 4000000 + Number(rv));
	const widen = (state) => JSON.parse(JSON.stringify(state)
		.replace(/"(rv|oldest|newest|began)":"(\d+)"/g, (all, name, rv) => '"' + name + '":"' + late(rv) + '"')
		.replace(/(\/registry\/\w+\/[\w-]+\/|"key":"[\w-]+\/)([\w.-]+)/g, (all, folder, name) => folder + long(name)));
	if (!window.narrow) {
		window.narrow = scene.show.bind(scene);
		scene.show = (state, resource) => window.narrow(window.wide ? widen(state) : state, resource);
	}
	const drawn = async (wide) => {
		window.wide = wide;
		scene.stale = true;
		for (let n = 0; n < 3 || scene.stale; n++) await new Promise(requestAnimationFrame);
	};
	await drawn(true);
	const stage = $("#stage").getBoundingClientRect();
	const inside = (t) => t.x + t.w > stage.left + 1 && t.x < stage.right - 1 && t.y + t.h > stage.top + 1 &&
		t.y < stage.bottom - 1;
	const texts = listwatch.picture().texts.filter((t) => !t.moves && inside(t));
	const turned = new Set($$("#ring-versions text").map((el) => el.textContent)); // rotated, each in its own cell
	const found = [];
	const least = document.body.dataset.story === "tour" ? 6 : 10; // the tour begins with six
	if (texts.length < least) found.push("there are " + texts.length + " texts");
	texts.forEach((a, i) => {
		if (a.x < stage.left - 1 || a.x + a.w > stage.right + 1 || a.y < stage.top - 3 ||
			a.y + a.h > stage.bottom + 3) found.push(a.text + " runs over an edge");
		for (const b of texts.slice(i + 1)) {
			if ($meet(a, b) && !(turned.has(a.text) && turned.has(b.text))) found.push(a.text + " on " + b.text);
		}
	});
	await drawn(false);
	return found;
})()`

// collides checks the stage in each view and leaves the window in the first one.
func (p *page) collides(t *testing.T, state string) {
	t.Helper()
	for _, v := range views {
		p.do(t, v.wear(v.scale))
		press := func() {
			if v.before != "" {
				evaluate[bool](t, p, fmt.Sprintf("($(%q).click(), true)", v.before))
			}
		}
		press()
		if found := evaluate[[]string](t, p, collisions); len(found) > 0 {
			t.Errorf("%s, %s: %d collisions: %q", state, v.name, len(found), found[:min(len(found), 6)])
			if *screenshots != "" {
				p.shoot(t, filepath.Join(*screenshots, "collides", state+" "+v.name+".png"))
			}
		}
		press()
	}
	p.do(t, views[0].wear(1))
}
