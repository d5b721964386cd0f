package clientgo

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"listwatch/internal/compat/program"
)

// TestWhatAWatchBeginsWith opens a watch for every combination of options that means something, then makes one change,
// and reads up to it. A and b were
// there before; the resource version N is that of the last change but one.
func TestWhatAWatchBeginsWith(t *testing.T) {
	t.Parallel()
	const stream = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
	const onlyNew = "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
	v := program.StartViz(t, alone...)
	client := clientset(t, v).CoreV1().ConfigMaps("default")
	for _, name := range []string{"a", "b"} {
		must(client.Create(t.Context(), configMap(name, "k", "v"), metav1.CreateOptions{}))
	}
	for _, c := range []struct{ query, want string }{
		{"", "+a +b ~b"},
		{"&allowWatchBookmarks=true", "+a +b end ~b"},
		{"&resourceVersion=0", "+a +b ~b"},
		{"&resourceVersion=0&allowWatchBookmarks=true", "+a +b end ~b"},
		{"&resourceVersion=N&", "~b ~b"},
		{"&resourceVersion=N&allowWatchBookmarks=true", "~b ~b"},
		{stream, "+a +b ~b"},
		{stream + "&allowWatchBookmarks=true", "+a +b end ~b"},
		{stream + "&resourceVersion=0&allowWatchBookmarks=true", "+a +b end ~b"},
		{stream + "&allowWatchBookmarks=true&resourceVersion=N&", "+a +b end ~b"},
		{onlyNew, "~b"},
		{onlyNew + "&allowWatchBookmarks=true", "~b"},
		{onlyNew + "&resourceVersion=0", "~b"},
		{stream + "&allowWatchBookmarks=true&fieldSelector=metadata.name%3Db", "+b end ~b"},
		{"&fieldSelector=metadata.name%3Db", "+b ~b"},
	} {
		t.Run(c.query, func(t *testing.T) {
			n := change(t, client, c.query+" 1")
			change(t, client, c.query+" 2")
			stored(t, v) // the cache has it
			response, err := http.Get(v.URL + mapsPath + "?watch=1" + strings.ReplaceAll(c.query, "=N&", "="+n+"&"))
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.StatusCode != http.StatusOK {
				t.Fatalf("got %s", response.Status)
			}
			last := change(t, client, c.query+" 3")
			if got := readUpTo(t, json.NewDecoder(response.Body), last); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// change changes b and returns the version this led to.
func change(t *testing.T, client corev1client.ConfigMapInterface, what string) string {
	t.Helper()
	patch := fmt.Appendf(nil, `{"data":{"change":%q}}`, what)
	return must(client.Patch(t.Context(), "b", types.MergePatchType, patch, metav1.PatchOptions{})).ResourceVersion
}

// readUpTo returns the events of a stream up to the one at a resource version: "+a" is an ADDED, "~a" a MODIFIED, "end" the
// bookmark that ends the initial events.
func readUpTo(t *testing.T, stream *json.Decoder, rv string) string {
	t.Helper()
	var words []string
	for {
		var event metav1.WatchEvent
		if err := stream.Decode(&event); err != nil {
			t.Fatalf("after %v: %v", words, err)
		}
		obj := &corev1.ConfigMap{}
		if err := json.Unmarshal(event.Object.Raw, obj); err != nil {
			t.Fatal(err)
		}
		switch event.Type {
		case "ADDED":
			words = append(words, "+"+obj.Name)
		case "MODIFIED":
			words = append(words, "~"+obj.Name)
		case "BOOKMARK":
			if obj.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
				words = append(words, "end")
			}
		default:
			words = append(words, event.Type+obj.Name)
		}
		if obj.ResourceVersion == rv && event.Type != "BOOKMARK" {
			return strings.Join(words, " ")
		}
	}
}

// TestAWatchFromTheFutureIsSilent says nothing about what happens before its version, not even in bookmarks.
func TestAWatchFromTheFutureIsSilent(t *testing.T) {
	t.Parallel()
	v := program.StartViz(t, alone...)
	client := clientset(t, v).CoreV1().ConfigMaps("default")
	must(client.Create(t.Context(), configMap("a", "k", "v"), metav1.CreateOptions{}))
	response, err := http.Get(v.URL + mapsPath + "?watch=1&resourceVersion=999999999&allowWatchBookmarks=true&timeoutSeconds=3")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	must(client.Create(t.Context(), configMap("b", "k", "v"), metav1.CreateOptions{}))
	var event metav1.WatchEvent
	if err := json.NewDecoder(response.Body).Decode(&event); err == nil {
		t.Errorf("got %s %s", event.Type, event.Object.Raw)
	}
}
