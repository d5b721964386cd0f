package scenario

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// TestStoriesWithEtcdAheadOfTheInformer tells the stories of servers in a world in which another resource was written
// last: etcd is ahead of the informer's version then, and a server that starts knows nothing of the versions before its
// own list.
func TestStoriesWithEtcdAheadOfTheInformer(t *testing.T) {
	for _, each := range All {
		if each.Alone == "" {
			continue
		}
		t.Run(each.ID, func(t *testing.T) {
			inWorld(t, true, func(t *testing.T, w *World) {
				other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "written-last"}}
				if err := w.Pipeline.Client.NewClient("other", nil, nil).Post().Resource("namespaces").Body(other).
					Do(t.Context()).Error(); err != nil {
					t.Fatal(err)
				}
				_, err := w.Play(t.Context(), each.ID)
				assert.NoError(t, err)
			})
		})
	}
}

// TestAStoryWaitsForAReflectorThatWasOftenCutOff tells a story so often that the reflector's delays have grown to the
// longest. Each is told as soon as the one before is over.
func TestAStoryWaitsForAReflectorThatWasOftenCutOff(t *testing.T) {
	inWorld(t, false, func(t *testing.T, w *World) {
		for range 20 {
			_, err := w.Play(t.Context(), "stale-write")
			require.NoError(t, err)
		}
	})
}
