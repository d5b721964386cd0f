package reflector

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"listwatch/internal/check/bubble"
	"listwatch/internal/check/drawing"
	"listwatch/internal/check/require"
)

// The drawing of the rounds: each line is a request of one reflector, in a run in which each kind of end occurs.
func TestTheDrawingOfTheRoundsIsOfThisReflector(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newServer()
		s.onList(listing(podList("5", pod("a", "5"))), listing(podList("12", pod("a", "12"))))
		s.onWatch(
			played(2*time.Second, event(watch.Modified, pod("a", "6")), event(watch.Added, pod("b", "8"))),
			refusing(busy),
			played(3*time.Second, event(watch.Deleted, pod("b", "9")), errorEvent(expired)),
			played(time.Hour, event(watch.Modified, pod("a", "13"))),
		)
		r := newTestReflector(s, &record{}, nil)
		stop := running(t, r)
		time.Sleep(6 * time.Second)
		stop()
		got := []struct{ has, ends, then string }{
			{"the state at 5", "", ""},
			{"6, 8", "a clean end", "at once"},
			{"", "refused, 429", "wait"},
			{"9", "ERROR, 410", "wait, list"},
			{"the state at 12", "", ""},
			{"13, …", "", ""},
		}
		asked := strings.Split(s.log(), "\n")
		require.True(t, len(asked) == len(got), "asked %q", asked)
		d := drawing.New("rounds.svg", 322)
		d.Text(16, 24, "soft", "when")
		d.Text(76, 24, "soft", "the request")
		d.Text(250, 24, "soft", "what comes")
		d.Text(430, 24, "soft", "how it ends")
		for i, request := range asked {
			y := 60 + i*42
			when, what, _ := strings.Cut(request, " ")
			what, _, _ = strings.Cut(what, " limit=")
			verb, rv, _ := strings.Cut(what, " rv=")
			kind := "queue"
			if verb == "list" {
				kind = "kept"
			}
			d.Text(16, y, "soft", "%s", when)
			d.Text(76, y, "", "%s", verb)
			d.Text(136, y, "bold", "%s", map[string]string{"list": rv + " or newer", "watch": "from " + rv}[verb])
			if got[i].has != "" {
				d.In(kind, func() { d.Box(244, y-20, 14+9*len(got[i].has), 30, "wall") })
				d.Text(252, y, "", "%s", got[i].has)
			}
			d.Text(430, y, "", "%s", got[i].ends)
			d.Text(540, y, "soft", "%s", got[i].then)
		}
		d.Text(16, 312, "", "A watch begins where the last one ended. Only the 410 costs a list.")
		d.Check(t)
	})
}
