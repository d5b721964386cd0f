package indexer

import (
	"slices"
	"strings"
	"testing"

	"listwatch/internal/check/drawing"
	"listwatch/internal/check/require"
)

// The drawing of the index: the store before and after one update, as its readers see it.
func TestTheDrawingOfTheIndexIsOfThisStore(t *testing.T) {
	c := newPodStore()
	for _, p := range []struct{ name, node string }{{"a", "n1"}, {"b", "n1"}, {"c", "n2"}} {
		require.NoError(t, c.Add(pod("default", p.name, p.node, 5)))
	}
	d := drawing.New("index.svg", 296)
	frame := func(x int, says string) {
		d.Text(x, 24, "bold", "%s", says)
		d.Text(x, 56, "soft", "items")
		d.Text(x+150, 56, "soft", "index node")
		keys := c.ListKeys()
		slices.Sort(keys)
		d.In("kept", func() {
			for i, key := range keys {
				item, _, err := c.GetByKey(key)
				require.NoError(t, err)
				values, err := byNode(item)
				require.NoError(t, err)
				d.Box(x, 68+i*56, 124, 40, "wall")
				d.Text(x+12, 93+i*56, "", "%s on %s", strings.TrimPrefix(key, "default/"), values[0])
			}
			for i, node := range []string{"n1", "n2"} {
				found, err := c.IndexKeys("node", node)
				require.NoError(t, err)
				slices.Sort(found)
				d.Box(x+150, 68+i*84, 138, 68, "wall")
				d.Text(x+162, 94+i*84, "bold", "%s", node)
				d.Text(x+162, 120+i*84, "", "%s", strings.ReplaceAll(strings.Join(found, ", "), "default/", ""))
			}
		})
	}
	frame(16, "before")
	require.NoError(t, c.Update(pod("default", "a", "n2", 6)))
	frame(336, "after a moves to n2")
	d.Text(16, 262, "", "One lock covers the item and both sets.")
	d.Text(16, 284, "", "No reader finds a in two sets, or in none.")
	d.Check(t)
}
