package takes

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/fold"
	"listwatch/internal/play/scenario"
)

// TestTheTakesShowWhatTheyShowed compares what every take shows with takes.sum: a hash of the picture at each keyframe,
// and the record at which each beat of its story rests. A change of how records are written, folded or found changes
// none of it. With -update it writes the file again, for takes that were made again or are shown otherwise.
func TestTheTakesShowWhatTheyShowed(t *testing.T) {
	const file = "takes.sum"
	var sum strings.Builder
	for _, take := range Every() {
		state, records, err := take.Load()
		require.NoError(t, err)
		frames := fold.NewKeyframes(uint64(max(50, len(records)/20)))
		last := uint64(0)
		for i := range records {
			frames.Fold(state, records[i:i+1])
			if frame, _ := frames.At(records[i].Seq); frame.Seq != last {
				last = frame.Seq
				fmt.Fprintln(&sum, take.Name, "picture", last, hashOf(t, frame.State))
			}
		}
		if story := scenario.Find(strings.TrimPrefix(take.Name, StoryPrefix)); story != nil {
			beats := require.Value(story.Locate(records))(t)
			for i, beat := range beats {
				fmt.Fprintln(&sum, take.Name, "beat", i+1, "rests at", beat.To, "because of", beat.Behind)
			}
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(sum.String()), 0o644))
	}
	want := require.Value(os.ReadFile(file))(t)
	assert.NoDiff(t, strings.Split(strings.ReplaceAll(string(want), "\r\n", "\n"), "\n"),
		strings.Split(sum.String(), "\n"))
}

// hashOf returns a hash of a picture without its texts: of lengths, keys, versions, counters, and what is in what.
func hashOf(t *testing.T, written []byte) string {
	t.Helper()
	var picture any
	require.NoError(t, json.Unmarshal(written, &picture))
	var strip func(node any)
	strip = func(node any) {
		switch node := node.(type) {
		case map[string]any:
			delete(node, "text")
			delete(node, "texts")
			for _, each := range node {
				strip(each)
			}
		case []any:
			for _, each := range node {
				strip(each)
			}
		}
	}
	strip(picture)
	hash := sha256.Sum256(require.Value(json.Marshal(picture))(t))
	return fmt.Sprintf("%x", hash[:6])
}
