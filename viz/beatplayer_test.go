//go:build !race

package viz

import (
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// theatre is a beatPlayer of three beats, the second with a question, on a stage whose cursor the test moves.
const theatre = `
	var cursor = 0, asked = [], arrive = null, fails = "", troubles = [];
	var pace = { lead: 3000, play: 2000, rest: 2000 };
	var beats = [
		{ pace, look: ["ring"] },
		{ pace, look: ["wire"], question: { ask: "Which?", answers: ["This", "That"], right: 1 } },
		{ pace, look: ["handler"] },
	];
	var beatPlayer = new page.beatPlayer.BeatPlayer(beats, {
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
	var at = () => [beatPlayer.beat + 1, beatPlayer.phase, cursor].join(" ");
	true`

func TestAStoryIsToldAsTheViewerGoesOn(t *testing.T) {
	t.Parallel()
	type step struct{ act, want string }
	for name, steps := range map[string][]step{
		"by next": {
			{"beatPlayer.open(0, Infinity, false)", "1 ready 0"}, {"asked.length", "1 ready 0"}, // no fetch yet
			{"beatPlayer.next()", "1 plays 0"}, {"arrive(true)", "1 rests 10"},
			{"beatPlayer.next()", "2 ready 10"}, {"beatPlayer.next()", "2 plays 10"}, {"arrive(true)", "2 rests 20"},
			{"beatPlayer.next()", "3 ready 20"}, {"beatPlayer.next()", "3 plays 20"}, {"arrive(true)", "3 rests 30"},
			{"beatPlayer.next()", "3 rests 30"},
		},
		"in haste": {
			{"beatPlayer.open(0)", "1 ready 0"}, {"beatPlayer.next()", "1 plays 0"},
			{"beatPlayer.next()", "1 rests 10"},
		},
		"back": {
			{"beatPlayer.open(2)", "3 ready 20"}, {"beatPlayer.next()", "3 plays 20"},
			{"beatPlayer.back()", "2 rests 20"},
			{"beatPlayer.back()", "1 rests 10"},
			{"beatPlayer.back()", "1 ready 0"}, {"beatPlayer.back()", "1 ready 0"},
		},
		"by itself": {
			{"beatPlayer.open(0)", "1 ready 0"}, {"beatPlayer.toggle()", "1 plays 0"}, {"arrive(true)", "1 rests 10"},
			{"beatPlayer.tick(1e5)", "2 ready 10"},
			{"beatPlayer.tick(1e5)", "2 plays 10"}, {"arrive(true)", "2 rests 20"},
			{"beatPlayer.tick(1e5)", "3 ready 20"},
			{"beatPlayer.tick(1e5)", "3 plays 20"},
			{"arrive(true)", "3 rests 30"}, {"beatPlayer.tick(1e5)", "3 rests 30"},
			{"beatPlayer.toggle()", "1 ready 0"},
			{"beatPlayer.tick(1e5)", "1 plays 0"},
		},
		"paused": {
			{"beatPlayer.open(0)", "1 ready 0"}, {"beatPlayer.toggle()", "1 plays 0"},
			{"beatPlayer.toggle()", "1 plays 0"},
			{"arrive(true)", "1 rests 10"}, {"beatPlayer.tick(1e5)", "1 rests 10"},
		},
		"led astray": {
			{"beatPlayer.open(0)", "1 ready 0"}, {"beatPlayer.next()", "1 plays 0"},
			{"cursor = 4, arrive(false)", "1 away 4"},
			{"beatPlayer.at(10)", "1 rests 4"},
			{"beatPlayer.at(4)", "1 away 4"}, {"beatPlayer.next()", "1 plays 0"},
		},
		"what cannot be had": {
			{`fails = "gone"`, "1 busy 0"}, {"beatPlayer.open(1)", "2 away 0"}, {`fails = ""`, "2 away 0"},
			{"beatPlayer.next()", "2 plays 10"},
		},
		"with no motion": {
			{"beatPlayer.still = true, beatPlayer.open(1)", "2 ready 10"}, {"beatPlayer.guess(0)", "2 plays 10"},
			{"arrive(true)", "2 rests 20"}, {"beatPlayer.next()", "3 ready 20"},
			{"beatPlayer.tick(1)", "3 plays 20"},
		},
		"left": {
			{"beatPlayer.open(0)", "1 ready 0"}, {"beatPlayer.next()", "1 plays 0"},
			{"beatPlayer.leave()", "1 plays 0"},
			{"arrive(true)", "1 plays 10"}, {"beatPlayer.tick(1e5)", "1 plays 10"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, map[string]string{"beatPlayer": "stories/beatplayer.js"})
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
	for guess, want := range map[string]string{"beatPlayer.guess(0)": "wrong", "beatPlayer.guess(1)": "right",
		"beatPlayer.next()": "told", "beatPlayer.guess(2), beatPlayer.next()": "told"} {
		e := newEngine(t, map[string]string{"beatPlayer": "stories/beatplayer.js"})
		run[bool](t, e, theatre)
		run[any](t, e, "beatPlayer.open(1)")
		run[any](t, e, guess)
		assert.Equal(t, "", run[string](t, e, "beatPlayer.verdict()"), guess)
		run[any](t, e, "arrive(true)")
		run[any](t, e, "beatPlayer.guess(1)") // too late
		assert.Equal(t, want, run[string](t, e, "beatPlayer.verdict()"), guess)
	}
}
