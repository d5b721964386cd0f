package informer

import (
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	indexer "listwatch/chapters/11-indexer"
	"listwatch/internal/check/assert"
)

const many = 100_000

var manyNames = sync.OnceValue(func() []string {
	names := make([]string, many)
	for i := range names {
		names[i] = fmt.Sprintf("pod-%06d", i)
	}
	return names
})

// TestAHundredThousandObjects is the size of a large cluster: the first state, a handler that comes late, and a relist
// after which a thousand of them are gone and a thousand are others. Everything is told once.
func TestAHundredThousandObjects(t *testing.T) {
	server := func() *fakeServer { return newFakeServer(manyNames()...) }
	t.Run("real/watchlist", func(t *testing.T) { variant(t, FIFOReal, true, server, large) })
	t.Run("delta/list", func(t *testing.T) { variant(t, FIFODelta, false, server, large) })
}

func large(t *testing.T, b *bench) {
	early, late := &view{state: map[string]string{}}, &view{state: map[string]string{}}
	registration := b.add(early, HandlerOptions{})
	b.run()
	defer b.end()
	if !registration.HasSynced() || early.told != many {
		t.Errorf("the handler has synced: %v; it was told of %d, want all of %d once", registration.HasSynced(),
			early.told, many)
	}
	b.add(late, HandlerOptions{})
	synctest.Wait()
	b.sameEverywhere("after the first state", early, late)

	b.server.cut(true) // and before the next list, which is 0.8 s away:
	for i, name := range manyNames() {
		switch i % 100 {
		case 7:
			b.server.delete(name)
		case 8:
			b.server.set(name)
		}
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	assert.Equal(t, len(b.GetStore().ListKeys()), many-many/100, "the store holds")
	b.sameEverywhere("after a relist", early, late)
}

// sameEverywhere expects that the store, its index and the handlers hold what the server holds, and that nothing
// strange was told on the way.
func (b *bench) sameEverywhere(when string, views ...*view) {
	b.t.Helper()
	want := b.server.state()
	assert.True(b.t, maps.Equal(b.stored(), want), "%s: the store is not the server's state", when)
	inNamespace, err := b.GetIndexer().IndexKeys(indexer.NamespaceIndex, "default")
	assert.True(b.t, err == nil && len(inNamespace) == len(want),
		"%s: the index has %d of %d, %v", when, len(inNamespace), len(want), err)
	for i, v := range views {
		if !maps.Equal(v.state, want) || len(v.strange) > 0 {
			b.t.Errorf("%s: handler %d knows %d, want the server's %d; strange is %.10q", when, i, len(v.state),
				len(want), v.strange)
		}
	}
}
