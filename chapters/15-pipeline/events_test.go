package pipeline

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// Events are forgotten an hour after they were reported last; nothing else is.
func TestEventsExpire(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		for _, name := range []string{"a", "b"} {
			event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: name}, InvolvedObject: corev1.ObjectReference{
				Namespace: "default"}}
			if err := w.client.Post().Namespace("default").Resource("events").Body(event).Do(t.Context()).
				Error(); err != nil {
				t.Fatal(err)
			}
		}
		names := func() (names []string) {
			list := &corev1.EventList{}
			require.NoError(t, w.client.Get().Namespace("default").Resource("events").Do(t.Context()).Into(list))
			for _, event := range list.Items {
				names = append(names, event.Name)
			}
			return names
		}
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "lasting"}}
		if err := w.client.Post().Namespace("default").Resource("configmaps").Body(configMap).Do(t.Context()).
			Error(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Minute)
		again := &corev1.Event{}
		request := w.client.Get().Namespace("default").Resource("events").Name("b")
		require.NoError(t, request.Do(t.Context()).Into(again))
		again.Count = 2
		if err := w.client.Put().Namespace("default").Resource("events").Name("b").Body(again).Do(t.Context()).
			Error(); err != nil {
			t.Fatal(err)
		}
		assert.EqualSlices(t, names(), []string{"a", "b"}, "after half an hour")
		time.Sleep(35 * time.Minute)
		assert.EqualSlices(t, names(), []string{"b"}, "after an hour")
		time.Sleep(30 * time.Minute)
		got := names()
		assert.Equal(t, len(got), 0, "in the end: got %v", got)
		if err := w.client.Get().Namespace("default").Resource("configmaps").Name("lasting").Do(t.Context()).
			Error(); err != nil {
			t.Errorf("what has no time to live: %v", err)
		}
	})
}

// Bookmarks are the dispatcher's, and Events have none: their watch gets only the bookmark that ends the first state.
func TestAWatchWithoutACacheGetsOneBookmark(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		initial, timeout := true, int64(150)
		opts := metav1.ListOptions{
			SendInitialEvents: &initial, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
			AllowWatchBookmarks: true, TimeoutSeconds: &timeout,
		}
		for resource, want := range map[string]bool{"configmaps": true, "events": false} {
			stream, err := w.client.ListWatch(resource, "default", nil).Watch(t.Context(), opts)
			require.NoError(t, err)
			configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "beside-" + resource}}
			if err := w.client.Post().Namespace("default").Resource("configmaps").Body(configMap).Do(t.Context()).
				Error(); err != nil {
				t.Fatal(err)
			}
			bookmarks := 0
			for event := range stream.ResultChan() {
				if event.Type == watch.Bookmark {
					bookmarks++
				}
			}
			assert.True(t, bookmarks != 0 && bookmarks > 1 == want, "%s: %d bookmarks", resource, bookmarks)
		}
	})
}
