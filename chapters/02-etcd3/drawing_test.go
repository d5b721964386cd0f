package etcd3

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/chapterdrawing"
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
		w := start(t, s, storage.ListOptions{ResourceVersion: at, Predicate: storage.Everything,
			Recursive: true})
		remove(t, s, "b")
		note("b", "gone")
		create(t, s, pod("c", "db"))
		note("c", "app: db")
		sent := w.next()
		require.Equal(t, 2, len(sent))

		d := chapterdrawing.New("../01-storage/roll.svg", 300)
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

// timedCodec takes its time for each pod, and notes when it was at it.
type timedCodec struct {
	runtime.Codec
	takes map[string]time.Duration
	began time.Time

	mu   sync.Mutex // guards what follows
	spun map[string][2]time.Duration
}

func (c *timedCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object,
	*schema.GroupVersionKind, error) {
	from := time.Since(c.began)
	for name, takes := range c.takes {
		if bytes.Contains(data, []byte("decoded-"+name)) {
			time.Sleep(takes)
			c.mu.Lock()
			c.spun[name] = [2]time.Duration{from, time.Since(c.began)}
			c.mu.Unlock()
		}
	}
	return c.Codec.Decode(data, defaults, into)
}

// The drawing of decoding: five events at once, which take different times.
func TestTheDrawingOfDecodingIsOfThisStore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		quick, client := newMVCC(t)
		codec := &timedCodec{takes: map[string]time.Duration{"a": 3 * time.Second, "b": time.Second,
			"c": 4 * time.Second, "d": 2 * time.Second, "e": time.Second}, began: time.Now(),
			spun: map[string][2]time.Duration{}}
		slow := newStore(t, client, func(cfg *Config) { codec.Codec, cfg.Codec = cfg.Codec, codec })
		w := start(t, slow, storage.ListOptions{ResourceVersion: "1", Predicate: storage.Everything,
			Recursive: true})
		names := []string{"a", "b", "c", "d", "e"}
		for _, name := range names {
			create(t, quick, pod("decoded-"+name, ""))
		}
		d := chapterdrawing.New("decoding.svg", 306)
		d.Text(16, 24, "soft", "five events, as etcd sent them")
		d.Text(624, 24, "end soft", "leave")
		at := func(when time.Duration) int { return 90 + int(when*100/time.Second) }
		for i, name := range names {
			event := <-w.ResultChan()
			left := time.Since(codec.began)
			y := 58 + i*42
			accessor := event.Object.(*corev1.Pod)
			require.Equal(t, "decoded-"+name, accessor.Name, "event %d", i)
			codec.mu.Lock()
			spun := codec.spun[name]
			codec.mu.Unlock()
			d.Text(16, y, "bold", "%s", name)
			d.Text(40, y, "soft", "%s", accessor.ResourceVersion)
			d.In("acts", func() { d.Box(at(spun[0]), y-18, at(spun[1])-at(spun[0]), 26, "fill") })
			if left > spun[1] {
				d.Path("way later", "M%d %dH%d", at(spun[1]), y-5, at(left))
			}
			d.Arrow("way", "M%d %dH%d", at(left), y-5, at(left)+30)
			d.Text(624, y, "end", "%d s", int(left/time.Second))
		}
		d.Text(16, 276, "", "All are decoded at once. What is ready early waits (dashed) for those before it:")
		d.Text(16, 298, "", "they leave in the order in which they came.")
		d.Check(t)
		w.Stop()
	})
}
