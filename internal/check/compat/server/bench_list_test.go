package server

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// BenchmarkList reads 10000 pods, or those of them that are selected, from the cache.
func BenchmarkList(b *testing.B) {
	for _, list := range []struct {
		name string
		query
	}{
		{"at-0", query{rv: "0"}},
		{"at-0-one-in-ten", query{rv: "0", label: "app=app3"}},
		{"at-0-one-node", query{rv: "0", field: "spec.nodeName=n3"}},
		{"at-0-one-namespace", query{rv: "0", namespace: "ns3"}},
		{"consistent", query{}},
		{"pages-of-500", query{limit: 500}},
	} {
		b.Run(list.name, func(b *testing.B) {
			compareSides(b, 10000, 1000, func(b *testing.B, _ *feed, cache side) { listPages(b, cache, list.query) })
			if list.name == "at-0" {
				b.Run("floor", copyPods)
			}
		})
	}
}

// copyPods is what is left of a list of everything when the finding is taken away: the items are values, so each pod is copied
// into the list.
func copyPods(b *testing.B) {
	f := newFeed(10000, 1000)
	pods := make([]*corev1.Pod, f.pods)
	for i := range pods {
		pods[i] = f.pod(i, 1)
	}
	b.ReportAllocs()
	defer reportCPU(b)()
	for b.Loop() {
		list := &corev1.PodList{Items: make([]corev1.Pod, 0, len(pods))}
		for _, p := range pods {
			list.Items = append(list.Items, *p)
		}
		if len(list.Items) != f.pods {
			b.Fatal("some are missing")
		}
	}
}

func listPages(b *testing.B, cache side, q query) {
	b.ReportAllocs()
	defer reportCPU(b)()
	for b.Loop() {
		page, found := q, 0
		for {
			list := &corev1.PodList{}
			if err := cache.list(b.Context(), page, list); err != nil {
				b.Fatal(err)
			}
			found += len(list.Items)
			if page.token = list.Continue; page.token == "" {
				break
			}
		}
		if found == 0 {
			b.Fatal("an empty list")
		}
	}
}
