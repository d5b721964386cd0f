package tour

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/check/sandboxtest"
	"listwatch/internal/observe/fold"
)

// TestATourIsGivenToItsEnd also with a ring that does not keep its size, and after all pages were away for a moment,
// which closes the tour's client.
func TestATourIsGivenToItsEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kept, away bool }{{true, false}, {false, false}, {true, true}} {
		sandboxtest.Run(t, 1<<16, func(t *testing.T, w *sandboxtest.World) {
			if c.kept {
				defer w.Sandbox.Tour()()
			}
			m := &Machine{
				Sandbox: w.Sandbox, Client: w.Pipeline.Client.NewClient("page", nil, nil), Log: w.Log, Clock: w.Clock,
				Keyframe: func(context.Context, uint64) (uint64, json.RawMessage, error) {
					text, err := json.Marshal(fold.New()) // of the beginning
					return 0, text, err
				},
			}
			tour := &Tour{From: w.Log.Last(), Informer: "informer"}
			for _, act := range []string{"begin", "stop", "back"} {
				if act == "back" && c.away {
					require.NoError(t, w.Sandbox.RemoveWatcher(t.Context(), tour.ID))
				}
				tour.Do = act
				require.NoError(t, m.Act(t.Context(), tour))
			}
			for i, place := range tour.Steps {
				assert.True(t, place.Rest > 0 && place.Happened != "", "%s: %+v", Steps[i].Title, place)
			}
			assert.Equal(t, strings.Contains(tour.Steps[8].Happened, "got 410"), c.kept, tour.Steps[8].Happened)
			tour.Do = "end"
			require.NoError(t, m.Act(t.Context(), tour))
		})
	}
}
