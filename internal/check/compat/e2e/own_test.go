package e2e

import (
	"regexp"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"listwatch/internal/check/assert"
)

// setsOut waits for the record of the response to kubectl's POST. It returns the number of frames from that record to
// the first frame in which the change moves, and the change's state then.
const setsOut = `new Promise((done) => {
	let [answered, looked, frames] = [false, 0, 0];
	const look = () => {
		const { player } = listwatch;
		const list = player.tape.between(Math.max(looked + 1, player.head - 3000), player.head + 1);
		looked = player.head;
		const its = (r) => r.point === "RequestAnswered" && r.texts.agent === "kubectl" && r.texts.method === "POST";
		answered ||= list.some(its);
		const { own, moving } = listwatch.picture({ texts: false });
		const moves = own?.key === "default/mine" && moving.some((m) => m.key === own.key && m.rv === own.rv);
		if (answered && (moves || frames > 1200)) return done({ Frames: frames, State: own?.state ?? "" });
		frames += Number(answered);
		requestAnimationFrame(look);
	};
	look();
})`

// TestTheViewersOwnChangeStartsAtOnce creates a pod with kubectl while other changes move. The pod must move at once.
func TestTheViewersOwnChangeStartsAtOnce(t *testing.T) {
	t.Parallel()
	alone(t)
	v := startViz(t)
	p := openPage(t, v.URL)
	p.live(t, v)
	p.until(t, `$picture().moving.length > 0`)
	for _, name := range []string{"p1", "p2", "p3"} {
		v.createPod(t, name)
	}
	p.until(t, `$picture().pile > 1`)
	k := kubectlFor(t, v)
	k.Run(t, "get", "pods")
	p.run(t, `void (window.out = %s)`, setsOut)
	k.Run(t, "run", "mine", "--image=example.com/mine")
	out := evaluate[struct {
		Frames int
		State  string
	}](t, p, "window.out")
	// Thirty frames are half a second at sixty frames a second. A busy machine draws fewer frames.
	assert.True(t, out.Frames <= 30 && out.State == "travels", "it is %s %d frames after its answer", out.State,
		out.Frames)
	p.run(t, `window.theirs = ""; // all texts about others, because each is soon replaced
		const next = $("#own .next");
		new MutationObserver(() => (theirs += next.textContent)).observe(next, { childList: true });`)
	p.until(t, `$picture().own.state === "arrived"`)
	words := evaluate[string](t, p, `$("#own .words").textContent`)
	said := regexp.MustCompile(`^[0-9.]+ ms, [0-9]+ hand-overs; shown [0-9]+ times slower$`)
	assert.True(t, said.MatchString(words), "at its end the page says %q", words)
	p.is(t, "true", "a bar for each station", `$$("#own li").length === $picture().own.hops + 1`)
	p.run(t, `$("#own li[data-at=ring]").focus()`)
	p.is(t, "true", "a bar lights its box", `$("[data-station=ring]").classList.contains("looked")`)
	p.until(t, `theirs.includes("Now theirs: scheduler")`)

	// The stage offers to switch to the resource of a change that it does not show.
	k.Run(t, "create", "configmap", "mine")
	p.until(t, `$("#own button")?.checkVisibility() && $("#own button").textContent === "Show configmaps"`)
	p.click(t, "#own button")
	p.until(t, `document.body.dataset.resource === "configmaps" && $picture().own?.key === "default/mine"`)
	p.press(t, kb.End)
	p.becomes(t, "", `$("#own").checkVisibility() ? $("#own").innerText : ""`) // a jump clears the message
}

// TestAPhoneScrollsAlongWithTheViewersChange creates a pod. The page must scroll to its last handler, below the window.
func TestAPhoneScrollsAlongWithTheViewersChange(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false", "-controllers=false")
	p := openPage(t, "about:blank")
	p.do(t, look{"phone", 390, 844, "light", "no-preference"}.wear(1), chromedp.Navigate(v.URL))
	p.live(t, v)
	const inSight = `(() => {
		const { top, bottom } = $("[data-station=handler] .hit").getBoundingClientRect();
		return top >= 0 && bottom <= innerHeight;
	})()`
	p.is(t, "false", "the handlers are in sight", inSight)
	kubectlFor(t, v).Run(t, "run", "mine", "--image=example.com/mine")
	p.until(t, `$picture().own?.state === "arrived" && `+inSight)
}
