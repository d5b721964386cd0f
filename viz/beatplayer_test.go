//go:build !race

package viz

import (
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// theatre is a teller of three beats, the second of which asks, before a stage whose cursor the test moves.
const theatre = `
	var cursor = 0, asked = [], arrive = null, fails = "", troubles = [];
	var pace = { lead: 3000, play: 2000, rest: 2000 };
	var beats = [
		{ pace, look: ["ring"] },
		{ pace, look: ["wire"], question: { ask: "Which?", answers: ["This", "That"], right: 1 } },
		{ pace, look: ["handler"] },
	];
	var teller = new page.teller.BeatPlayer(beats, {
		range: async (i) => {
			asked.push(i); if (fails) throw new Error(fails); return { from: i * 10, to: i * 10 + 10 };
		},
		play: (range) => new Promise((done) => {
			arrive = (reached) => { if (reached) cursor = range.to; done(reached); };
		}),
		seek: async (seq) => { arrive?.(false); cursor = seq; return true; },
		changed() {},
		trouble: (problem) => troubles.push(problem.message),
	});
	var at = () => [teller.beat + 1, teller.phase, cursor].join(" ");
	true`

func TestAStoryIsToldAsTheViewerGoesOn(t *testing.T) {
	t.Parallel()
	type step struct{ act, want string }
	for name, steps := range map[string][]step{
		"by next": {
			{"teller.open(0, false)", "1 ready 0"}, {"asked.length", "1 ready 0"}, // a link asks for nothing
			{"teller.next()", "1 plays 0"}, {"arrive(true)", "1 rests 10"},
			{"teller.next()", "2 ready 10"}, {"teller.next()", "2 plays 10"}, {"arrive(true)", "2 rests 20"},
			{"teller.next()", "3 lead 20"}, {"teller.next()", "3 plays 20"}, {"arrive(true)", "3 rests 30"},
			{"teller.next()", "3 rests 30"},
		},
		"in haste": {
			{"teller.open(0)", "1 ready 0"}, {"teller.next()", "1 plays 0"}, {"teller.next()", "1 rests 10"},
		},
		"back": {
			{"teller.open(2)", "3 ready 20"}, {"teller.next()", "3 plays 20"}, {"teller.back()", "2 rests 20"},
			{"teller.back()", "1 rests 10"},
			{"teller.back()", "1 ready 0"}, {"teller.back()", "1 ready 0"},
		},
		"by itself": {
			{"teller.open(0)", "1 ready 0"}, {"teller.toggle()", "1 plays 0"}, {"arrive(true)", "1 rests 10"},
			{"teller.tick(1e5)", "2 ready 10"},
			{"teller.tick(1e5)", "2 plays 10"}, {"arrive(true)", "2 rests 20"}, {"teller.tick(1e5)", "3 lead 20"},
			{"teller.tick(1e5)", "3 plays 20"},
			{"arrive(true)", "3 rests 30"}, {"teller.tick(1e5)", "3 rests 30"}, {"teller.toggle()", "1 ready 0"},
			{"teller.tick(1e5)", "1 plays 0"},
		},
		"paused": {
			{"teller.open(0)", "1 ready 0"}, {"teller.toggle()", "1 plays 0"}, {"teller.toggle()", "1 plays 0"},
			{"arrive(true)", "1 rests 10"}, {"teller.tick(1e5)", "1 rests 10"},
		},
		"led astray": {
			{"teller.open(0)", "1 ready 0"}, {"teller.next()", "1 plays 0"}, {"cursor = 4, arrive(false)", "1 away 4"},
			{"teller.at(10)", "1 rests 4"},
			{"teller.at(4)", "1 away 4"}, {"teller.next()", "1 plays 0"},
		},
		"what cannot be had": {
			{`fails = "gone"`, "1 busy 0"}, {"teller.open(1)", "2 away 0"}, {`fails = ""`, "2 away 0"},
			{"teller.next()", "2 plays 10"},
		},
		"with no motion": {
			{"teller.still = true, teller.open(1)", "2 ready 10"}, {"teller.guess(0)", "2 plays 10"}, {"arrive(true)",
				"2 rests 20"}, {"teller.next()", "3 plays 20"},
		},
		"left": {
			{"teller.open(0)", "1 ready 0"}, {"teller.next()", "1 plays 0"}, {"teller.leave()", "1 plays 0"},
			{"arrive(true)", "1 plays 10"}, {"teller.tick(1e5)", "1 plays 10"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, map[string]string{"teller": "stories/beatplayer.js"})
			run[bool](t, e, theatre)
			for _, s := range steps {
				run[any](t, e, s.act)
				require.Equal(t, s.want, run[string](t, e, "at()"), "after %s", s.act)
			}
		})
	}
}

func TestAGuessIsAnsweredByWhatIsSeen(t *testing.T) {
	t.Parallel()
	for guess, want := range map[string]string{"teller.guess(0)": "wrong", "teller.guess(1)": "right",
		"teller.next()": "told", "teller.guess(2), teller.next()": "told"} {
		e := newEngine(t, map[string]string{"teller": "stories/beatplayer.js"})
		run[bool](t, e, theatre)
		run[any](t, e, "teller.open(1)")
		run[any](t, e, guess)
		assert.Equal(t, "", run[string](t, e, "teller.verdict()"), guess)
		run[any](t, e, "arrive(true)")
		run[any](t, e, "teller.guess(1)") // too late
		assert.Equal(t, want, run[string](t, e, "teller.verdict()"), guess)
		assert.Equal(t, "1", run[string](t, e, "[...teller.shown].join()"), "shown were")
	}
}
