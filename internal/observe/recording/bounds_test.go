package recording

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/recordingtest"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

// TestAGreedyRecordingIsRefusedBeforeItTakesMemory reads small files that would become large pictures.
func TestAGreedyRecordingIsRefusedBeforeItTakesMemory(t *testing.T) {
	for _, greedy := range recordingtest.All {
		t.Run(greedy.Name, func(t *testing.T) {
			file := greedy.File()
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			rec, err := Read(t.Context(), bytes.NewReader(file))
			assert.True(t, err != nil && strings.Contains(err.Error(), greedy.Refusal),
				"a file of %d bytes: got %v, want %q", len(file), err, greedy.Refusal)
			runtime.ReadMemStats(&after)
			runtime.KeepAlive(rec)
			grown := int64(after.Sys - before.Sys)
			assert.True(t, grown <= 250<<20, "it took %d MB more from the system", grown>>20)
		})
	}
}

// TestTextsAreCutAsThePageCutsThem: a recording does not hold on to what is never shown.
func TestTextsAreCutAsThePageCutsThem(t *testing.T) {
	long := strings.Repeat("é", 100_000)
	file := packed(t, `{"format":"listwatch recording","version":1}`+"\n"+
		`{"seq":1,"point":"RingAppend","resource":"`+long+`","subject":"`+long+`","type":"`+long+`","key":"`+long+
		`","text":"`+long+`"}`)
	rec, err := Read(t.Context(), bytes.NewReader(file))
	require.NoError(t, err)
	want := strings.Repeat("é", probe.MaxText)
	r := rec.Records[0]
	for name, text := range map[string]string{"resource": r.Resource, "subject": r.Subject, "type": r.Type,
		"key": r.Key, "text": r.Text} {
		assert.Equal(t, text, want, "%s: got %d bytes, want %d", name, len(text), len(want))
	}
}

// TestReadingEndsWithItsContext: SIGTERM does not wait for a long file.
func TestReadingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	line := `{"seq":1,"point":"RingAppend"}`
	if _, err := Read(ctx, bytes.NewReader(packed(t, `{"format":"listwatch recording","version":1}`+"\n"+
		line))); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
