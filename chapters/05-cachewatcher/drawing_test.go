package cachewatcher

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/watch"

	"listwatch/internal/check/bubble"
	"listwatch/internal/check/drawing"
)

// The drawing of the two questions: each row is one event that a watcher of app=x is handed.
func TestTheDrawingOfTheTwoQuestionsIsOfThisWatcher(t *testing.T) {
	d := drawing.New("two-questions.svg", 262)
	d.Text(16, 24, "soft", "the object before")
	d.Text(190, 24, "soft", "the object now")
	d.Text(400, 24, "soft", "a watcher of app=x sends")
	for i, row := range []struct{ before, now string }{{"app=y", "app=x"}, {"app=x", "app=x"}, {"app=x", "app=y"},
		{"app=y", "app=y"}} {
		bubble.Test(t, func(t *testing.T) {
			b := start(t, options{rv: 5, label: "app=x"}).run()
			b.add(event(watch.Modified, 9, pod("default/c", 6, row.before), pod("default/c", 9, row.now)))
			sent := strings.NewReplacer(" c ", ", at ").Replace(b.seen())
			b.Stop()
			y := 60 + i*46
			for k, label := range []string{row.before, row.now} {
				x, class := 16+174*k, "wall later"
				if label == "app=x" {
					class = "wall"
				}
				d.In("kept", func() { d.Box(x, y-22, 110, 34, class) })
				d.Text(x+55, y, "mid", "%s", label)
			}
			d.Arrow("way", "M132 %dH184", y-5)
			if sent == "" {
				d.Text(400, y, "soft", "nothing")
				return
			}
			d.Arrow("way", "M306 %dH392", y-5)
			d.In("queue", func() { d.Box(396, y-22, 170, 34, "wall") })
			d.Text(410, y, "bold", "%s", sent)
		})
	}
	d.Text(16, 250, "", "In etcd all four are one thing: an update.")
	d.Check(t)
}
