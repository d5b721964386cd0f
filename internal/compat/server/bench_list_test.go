package server

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// BenchmarkList reads 10000 pods, or those of them that are selected, from the cache.
func BenchmarkList(b *testing.B) {
	for name, q := range map[string]query{
		"at-0":               {rv: "0"},
		"at-0-one-in-ten":    {rv: "0", label: "app=app3"},
		"at-0-one-node":      {rv: "0", field: "spec.nodeName=n3"},
		"at-0-one-namespace": {rv: "0", namespace: "ns3"},
		"consistent":         {},
		"pages-of-500":       {limit: 500},
	} {
		b.Run(name, func(b *testing.B) {
			compareSides(b, 10000, 1000, func(b *testing.B, _ *feed, cache side) { listPages(b, cache, q) })
		})
	}
}

func listPages(b *testing.B, cache side, q query) {
	b.ReportAllocs()
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
