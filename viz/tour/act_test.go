package tour

import (
	"context"
	"encoding/json"
	"flag"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	listwatch "listwatch/chapters/09-listwatch"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/check/sandboxtest"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/takes"
	"listwatch/internal/play/sandbox"
)

var update = flag.Bool("update", false, "make the tour's recording again")

// TestATourIsGivenToItsEnd also with a ring that does not keep its size, and after all pages were away for a moment,
// which closes the tour's client. The first one is what the recording shows.
func TestATourIsGivenToItsEnd(t *testing.T) {
	t.Parallel()
	for i, c := range []struct{ kept, away bool }{{true, false}, {false, false}, {true, true}} {
		sandboxtest.Run(t, 1<<16, func(t *testing.T, w *sandboxtest.World) {
			if c.kept {
				_, err := w.Sandbox.Turn(t.Context(), nil,
					sandbox.Knob{Name: "ring.capacity", Target: "pods", Value: "40"})
				require.NoError(t, err)
				defer w.Sandbox.Tour()()
			}
			// With this many requests a second there is something to be seen of each.
			client := listwatch.NewRESTClient(listwatch.Config{
				Base: &url.URL{Scheme: "http", Host: "pipe"}, HTTP: w.HTTP, UserAgent: "page", Clock: w.Clock, QPS: 10,
				Burst: 1,
			})
			m := &Machine{
				Sandbox: w.Sandbox, Client: client, Log: w.Log,
				Keyframe: func(context.Context, uint64) (fold.Keyframe, error) {
					text, err := json.Marshal(fold.New()) // of the beginning
					return fold.Keyframe{State: text}, err
				},
			}
			for _, name := range []string{"a", "b"} { // others, as on a stage
				pod := &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Name: name},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/c"}}},
				}
				write := client.Post().Namespace("default").Resource("pods").Body(pod)
				require.NoError(t, write.Do(t.Context()).Error())
				time.Sleep(4 * time.Second)
			}
			synctest.Wait()
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
			assert.Equal(t, c.kept, strings.Contains(tour.Steps[8].Happened, "got 410"), tour.Steps[8].Happened)
			if i == 0 && *update {
				synctest.Wait()
				file := sandboxtest.Develop(t, w.Log, tour.From, w.Log.Last())
				name := filepath.Join("../../internal/observe/takes", Take+takes.Suffix)
				require.NoError(t, os.WriteFile(name, file, 0o644))
			}
			if c.away {
				m.Leave(t.Context())
			} else {
				tour.Do = "end"
				require.NoError(t, m.Act(t.Context(), tour))
			}
			var left corev1.PodList
			require.NoError(t, client.Get().Resource("pods").Do(t.Context()).Into(&left))
			assert.Equal(t, 2, len(left.Items), "the pods that were there before")
		})
	}
}
