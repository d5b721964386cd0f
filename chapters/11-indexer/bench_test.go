package indexer

import (
	"fmt"
	"testing"
)

// filled returns a store of n pods in ten namespaces, on a hundred nodes.
func filled(n int) (*Cache, []any) {
	objs := make([]any, n)
	for i := range objs {
		objs[i] = pod(fmt.Sprintf("namespace-%d", i%10), fmt.Sprint(i), fmt.Sprintf("node-%d", i%100), i+1)
	}
	c := newPodStore()
	c.Replace(objs, "1")
	return c, objs
}

func BenchmarkByIndex(b *testing.B) {
	c, _ := filled(10000) // 100 pods on each node
	b.ReportAllocs()
	for b.Loop() {
		c.ByIndex("node", "node-7")
	}
}

func BenchmarkGetByKey(b *testing.B) {
	c, _ := filled(10000)
	b.ReportAllocs()
	for b.Loop() {
		c.GetByKey("namespace-7/4567")
	}
}

func BenchmarkUpdate(b *testing.B) {
	c, objs := filled(10000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c.Update(objs[i%len(objs)])
	}
}

func BenchmarkReplace(b *testing.B) {
	c, objs := filled(10000)
	b.ReportAllocs()
	for b.Loop() {
		c.Replace(objs, "1")
	}
}
