package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/observe/probe"
)

// told is a story as the page receives it.
type told struct {
	ID    string
	Cast  []struct{ Name string }
	Beats []struct {
		Look           []probe.Station
		Question       *struct{ Answers []string }
		Seen, At, Text string // the beat's point, its place, and the text there
	}
	Recorded []struct{ From, To, Behind uint64 }
}

// quiet starts a program that replays one record, so that only stories add records, and returns the stories.
func quiet(t *testing.T) (v *viz, all []told) {
	t.Helper()
	said := probe.TextsOf(probe.KnobTurned, "nothing")
	nothing := []probe.Record{{Seq: 1, Time: 1, Point: probe.KnobTurned, Texts: said}}
	v = startViz(t, "-replay", writeRecording(t, nothing))
	v.Get(t, "/viz/scenarios", &all)
	for i := range all {
		v.Get(t, "/viz/scenario/"+all[i].ID, &all[i])
	}
	return v, all
}

// resting is the page's state while a beat rests.
type resting struct {
	Story, Beat, Beats, Phase string
	Cursor                    uint64
	Bright                    []probe.Station // stations that are not dimmed
	Found                     []string        // contradictions
	Over                      bool            // the story has ended
}

// rests waits until the page rests at a beat, counted from 1, in the given phase. It returns the page's state.
func (p *page) rests(t *testing.T, beat int, phase string) resting {
	t.Helper()
	return evaluate[resting](t, p, fmt.Sprintf(`(async () => {
		const [{ dataset: at }, { dataset: told }] = [document.body, $("#story")];
		while (at.rest !== "true" || at.beat !== "%d" || told.phase !== %q) await $frames(1);
		await $frames(2); // lets the page draw
		const picture = $picture();
		const bright = $$("[data-station]").filter((el) => getComputedStyle(el).opacity === "1");
		return {
			Story: at.story, Beat: at.beat, Beats: at.beats, Phase: told.phase, Cursor: picture.cursor,
			Bright: bright.map((el) => el.dataset.station), Found: (%s)(picture),
			Over: $("#story").classList.contains("over"),
		};
	})()`, beat, phase, contradictions))
}

// holds compares the page's state with the story. The cursor must be at the given record, the beat's stations must be
// lit, and the picture must have no contradictions.
func (s *told) holds(t *testing.T, beat int, phase string, cursor uint64, r resting) {
	t.Helper()
	assert.False(t, r.Story != s.ID || r.Beats != fmt.Sprint(len(s.Beats)) || r.Cursor != cursor || len(r.Found) > 0,
		"%s: beat %d %s: %+v, want the cursor at %d of %d beats", s.ID, beat, phase, r, cursor, len(s.Beats))
	slices.Sort(r.Bright)
	assert.EqualSlices(t, slices.Sorted(slices.Values(s.Beats[beat-1].Look)), r.Bright, "%s: beat %d: in the light",
		s.ID, beat)
}

// TestAStoryIsToldByKeyboard goes through the first story from a link. Motion is off, so each beat ends at once. Then
// the test goes back one beat, and by another link to the last beat. viz/beatplayer_test.go tests auto-play, and
// viz/stories tests how long a story takes.
func TestAStoryIsToldByKeyboard(t *testing.T) {
	t.Parallel()
	v, all := quiet(t)
	p := openPage(t, "about:blank")
	p.do(t, looks[2].wear(1)) // looks[2] has no motion, and the size of most projectors
	s, n := &all[0], len(all[0].Beats)
	check := func(beat int, phase string, cursor uint64) {
		t.Helper()
		r := p.rests(t, beat, phase)
		s.holds(t, beat, phase, cursor, r)
		assert.Equal(t, beat == n && phase == "rests", r.Over, "%s: beat %d %s: it is over", s.ID, beat, phase)
	}
	p.navigate(t, v.URL+"/?story="+s.ID)
	check(1, "ready", s.Recorded[0].From)
	for i, beat := range s.Beats {
		if i > 0 && beat.Question != nil {
			check(i+1, "ready", s.Recorded[i].From)
		}
		if beat.Question != nil {
			p.strike(t, fmt.Sprint(1+i%len(beat.Question.Answers)))
		} else if i == 0 {
			p.strike(t, "PageDown")
		}
		check(i+1, "rests", s.Recorded[i].To)
		if beat.Question != nil {
			p.is(t, "1", fmt.Sprint("verdicts on the guess at beat ", i+1),
				`$$("#story section:not([hidden]) .verdict b").filter((el) => el.checkVisibility()).length`)
		}
		if i+1 < n {
			p.strike(t, "ArrowRight")
		}
	}
	p.strike(t, "ArrowLeft")
	check(n-1, "rests", s.Recorded[n-2].To)
	p.is(t, fmt.Sprintf("%s,%d", s.ID, n-1), "the address of a beat",
		`["story", "beat"].map((name) => new URL(location).searchParams.get(name)).join()`)
	p.navigate(t, fmt.Sprintf("%s/?story=%s&beat=%d", v.URL, s.ID, n))
	check(n, "ready", s.Recorded[n-1].From)
	p.strike(t, "Escape")
	p.until(t, `!("story" in document.body.dataset) && !$(".dimmed") && !/story|beat/.test(location.search) &&
		listwatch.player.head === 1`)
}

// TestAStoryIsPlayedLiveAndTold plays two stories on the machine. A link alone does not play a story; the viewer's next
// step does. Another visitor's page stays live. The second story's run lacks a beat, which the page replays from the
// recording.
func TestAStoryIsPlayedLiveAndTold(t *testing.T) {
	t.Parallel()
	v := startViz(t)
	p := openPage(t, v.URL+"/?story=selector")
	other := openPage(t, v.URL)
	other.live(t, v)
	p.rests(t, 1, "ready")
	knows := func(point string) bool {
		var answer struct{ Records []struct{ Key, Point string } }
		v.Get(t, "/viz/records?from=1&to=100000&resource=pods&key=default/selector-a", &answer)
		return slices.ContainsFunc(answer.Records, func(r struct{ Key, Point string }) bool {
			return strings.Contains(r.Key, "/selector-a") && r.Point == point
		})
	}
	assert.False(t, knows("TxnCommitted"), "a link played the story")
	const state = `$text("#story-state")`
	p.strike(t, "ArrowRight")
	p.rests(t, 1, "rests")
	assert.True(t, knows("TxnCommitted"), "the machine did not play the story")
	p.run(t, `$("#story-auto").click()`)
	p.until(t, `Number(document.body.dataset.beat) > 1 &&
		document.body.dataset.rest === "true"`) // auto-play has played another beat
	p.until(t, state+`.includes("the machine's run")`)
	other.is(t, ",live,live", "what another page shows",
		`[document.body.dataset.story, document.body.dataset.mode, listwatch.player.mode].join()`)
	p.navigate(t, v.URL) // a new page has auto-play off
	p.live(t, v)

	p.run(t, `const fetched = window.fetch;
		window.fetch = async (url, options) => {
			const answer = await fetched(url, options);
			if (options?.method !== "POST" || !String(url).includes("/viz/scenario/")) return answer;
			const seen = await answer.json();
			seen.beats[1] = { from: 0, to: 0 };
			return new Response(JSON.stringify(seen), { status: answer.status });
		};
		$("#open-stories").click();
		$('[data-play="stale-write"]').click();`)
	p.rests(t, 1, "rests")
	p.strike(t, "ArrowRight")
	p.rests(t, 2, "rests")
	p.until(t, state+`.includes("from a recording. The machine's run does not show beat 2")`)
	p.strike(t, "ArrowRight")
	p.rests(t, 3, "rests")
	p.until(t, state+`.includes("the machine's run")`)
	p.click(t, "#story-leave")
	p.live(t, v)
}
