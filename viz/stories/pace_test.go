package stories

import (
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/play/scenario"
)

// TestAStoryTellsItselfWithinAMinuteAndAHalf also expects at least 20 s for a story, and 0.5 s for each part of a beat.
func TestAStoryTellsItselfWithinAMinuteAndAHalf(t *testing.T) {
	t.Parallel()
	for i := range scenario.All {
		story := &scenario.All[i]
		recorded := require.Value(Recorded(story))(t)
		ms := 0.0
		for n, pace := range PaceOf(story, recorded) {
			least := min(pace.Lead, pace.Play, pace.Rest)
			assert.True(t, least >= 500, "%s, beat %d: %+v", story.ID, n+1, pace)
			ms += pace.Lead + pace.Play + pace.Rest
		}
		assert.True(t, ms >= 20_000 && ms <= 90_000, "%s takes %.0f ms, want 20 to 90 seconds", story.ID, ms)
	}
}
