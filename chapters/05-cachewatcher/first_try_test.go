package cachewatcher

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	storage "listwatch/chapters/01-storage"
	watchcache "listwatch/chapters/04-watchcache"
	"listwatch/internal/check/assert"
)

// First try: if the object matches the selector, send the event with the storage's verb.
func Example_filterByTheVerb() {
	changes := []struct{ verb, pod, app string }{
		{"ADDED", "a", "db"},
		{"ADDED", "b", "web"},
		{"MODIFIED", "a", "web"},
		{"MODIFIED", "b", "db"},
	}
	has := map[string]bool{} // the pods that a client which selects app=web knows
	for _, change := range changes {
		if change.app != "web" {
			continue // does not match: not for this client
		}
		if change.verb != "ADDED" && !has[change.pod] {
			fmt.Println(change.verb, change.pod, "- but the client has never seen", change.pod)
		}
		has[change.pod] = true
	}
	fmt.Println("in the end the client has", slices.Sorted(maps.Keys(has)))
	// Output:
	// MODIFIED a - but the client has never seen a
	// in the end the client has [a b]
}

// TestTheTableLeavesTheClientWithWhatMatches puts the cache watcher's table into the try's place.
func TestTheTableLeavesTheClientWithWhatMatches(t *testing.T) {
	web := storage.SelectionPredicate{Label: labels.SelectorFromSet(labels.Set{"app": "web"}),
		Field: fields.Everything()}
	w := New(Config{Filter: Filter{Key: prefix, Predicate: web}})
	has, before := map[string]bool{}, map[string]*corev1.Pod{}
	for i, change := range []struct {
		verb     watch.EventType
		pod, app string
	}{{watch.Added, "a", "db"}, {watch.Added, "b", "web"}, {watch.Modified, "a", "web"}, {watch.Modified, "b", "db"}} {
		now := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: change.pod,
			Labels: labels.Set{"app": change.app}}}
		event := &watchcache.Event{Type: change.verb, Object: now, ObjLabels: now.Labels, Key: prefix + "default/" +
			change.pod, ResourceVersion: uint64(i + 6)}
		if previous := before[change.pod]; previous != nil {
			event.PrevObject, event.PrevObjLabels = previous, previous.Labels
		}
		before[change.pod] = now
		out, wanted := w.convertToWatchEvent(event)
		if !wanted {
			continue
		}
		known := has[change.pod]
		assert.True(t, known == (out.Type != watch.Added), "%s %s, known before: %v", out.Type, change.pod, known)
		if has[change.pod] = true; out.Type == watch.Deleted {
			delete(has, change.pod)
		}
	}
	got := fmt.Sprint(slices.Sorted(maps.Keys(has)))
	assert.True(t, got == "[a]", "in the end the client has %s, want [a]", got)
}
