package takes

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/check/sandboxtest"
	"listwatch/internal/play/scenario"
)

// shootStory plays a story on a whole pipeline in a bubble, and returns the recording: it ends where the last beat
// rests.
func shootStory(t *testing.T, story *scenario.Story) (file []byte) {
	sandboxtest.Run(t, 1<<16, func(t *testing.T, w *sandboxtest.World) {
		world := &scenario.World{Pipeline: w.Pipeline, Sandbox: w.Sandbox, Log: w.Log, Probe: w.Probe, Clock: w.Clock}
		if story.Alone != "" {
			world.Machine = w
		}
		seen, err := world.Play(t.Context(), story.ID)
		require.NoError(t, err)
		require.Equal(t, seen.Untold, "")
		synctest.Wait()
		s := &set{log: w.Log}
		s.rollFrom(seen.From)
		file = s.develop(t, seen.Beats[len(seen.Beats)-1].To)
	})
	return file
}

// TestMakeStories holds that every story has its take. With -update it makes them again and keeps them, in the heavy
// form it only makes them: that every story can be played in a bubble, and has its beats, is what the tests of
// internal/play/scenario hold.
func TestMakeStories(t *testing.T) {
	for _, each := range scenario.All {
		t.Run(each.ID, func(t *testing.T) {
			take, ok := Find(StoryPrefix + each.ID)
			require.True(t, ok && take.Title == each.Title, "the take of the story %q: got %+v", each.Title, take)
			if !*update && os.Getenv("FULL") == "" {
				return
			}
			file := shootStory(t, &each)
			check(t, take, file)
			if *update {
				require.NoError(t, os.WriteFile(take.Name+Suffix, file, 0o644))
			}
		})
	}
}

// TestEveryBeatStandsInItsTake finds the beats of every story in the take that the program brings along.
func TestEveryBeatStandsInItsTake(t *testing.T) {
	size := 0
	for _, take := range slices.Concat(All, Stories) {
		size += len(take.File())
		id, ok := strings.CutPrefix(take.Name, StoryPrefix)
		if !ok {
			continue
		}
		story := scenario.Find(id)
		_, records, err := take.Load()
		require.True(t, story != nil && err == nil, "the story of the take %s: %v, %v", id, story, err)
		if _, err := story.Locate(records); err != nil {
			t.Error(err)
		}
	}
	assert.True(t, size <= 600_000, "all takes together: %d bytes, want at most 600 kB", size)
}
