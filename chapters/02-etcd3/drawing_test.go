package etcd3

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/drawing"
	"listwatch/internal/check/require"
)

// The drawing of chapter 01: the roll of paper, a list of it, and a watch from the list's version. It is drawn here,
// where there is a store to write into.
func TestTheDrawingOfTheRollIsOfThisStore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, client := newMVCC(t)
		type line struct{ rv, key, value string }
		var roll []line
		note := func(name, value string) {
			roll = append(roll, line{fmt.Sprint(client.Revision()), key(name), value})
		}
		create(t, s, pod("a", "db"))
		note("a", "app: db")
		create(t, s, pod("b", "db"))
		note("b", "app: db")
		relabel(t, s, "a", "web")
		note("a", "app: web")
		listed := &corev1.PodList{}
		require.NoError(t, s.GetList(t.Context(), prefix, storage.ListOptions{Predicate: storage.Everything,
			Recursive: true}, listed))
		at := listed.ResourceVersion
		w := start(t, s, prefix, storage.ListOptions{ResourceVersion: at, Predicate: storage.Everything, Recursive: true})
		remove(t, s, "b")
		note("b", "gone")
		create(t, s, pod("c", "db"))
		note("c", "app: db")
		sent := w.next()
		require.Equal(t, 2, len(sent))

		d := drawing.New("../01-storage/roll.svg", 300)
		d.Text(16, 24, "soft", "version")
		d.Text(100, 24, "soft", "key")
		d.Text(312, 24, "soft", "value after the write")
		y := func(i int) int { return 54 + i*38 }
		cut := 0
		d.In("kept", func() {
			for i, l := range roll {
				d.Box(16, y(i)-22, 420, 32, "wall")
				if l.rv == at {
					cut = i
				}
			}
		})
		for i, l := range roll {
			d.Text(52, y(i), "mid bold", "%s", l.rv)
			d.Text(100, y(i), "mono", "%s", strings.TrimPrefix(l.key, "/registry"))
			d.Text(312, y(i), "", "%s", l.value)
		}
		d.Path("way later", "M8 %dH632", y(cut)+13)
		names := make([]string, 0, len(listed.Items))
		for _, p := range listed.Items {
			names = append(names, p.Name+" "+p.ResourceVersion)
		}
		d.Text(452, y(cut)-38, "bold", "a list, at %s", at)
		d.Text(452, y(cut)-16, "soft", "%s", strings.Join(names, ", "))
		d.In("acts", func() { d.Path("wall", "M444 %dv%d", y(0)-20, y(cut)-y(0)+28) })
		d.Text(452, y(cut+1), "bold", "a watch, from %s", at)
		for i, each := range sent {
			d.Text(452, y(cut+1)+24*(i+1), "soft", "%s", each)
		}
		d.In("queue", func() { d.Path("wall", "M444 %dV%d", y(cut)+18, y(len(roll)-1)+10) })
		d.Text(16, 270, "", "The list is the state at one line. The watch is the roll from there on.")
		d.Text(16, 290, "", "Nothing is between them, and nothing is in both.")
		d.Check(t)
	})
}
