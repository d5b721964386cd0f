package registry

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"listwatch/internal/check/chapterdrawing"
	"listwatch/internal/check/require"
)

// The drawing of the two updates: between the read of the first client and its write comes the other's.
func TestTheDrawingOfTheTwoUpdatesIsOfThisStore(t *testing.T) {
	d := chapterdrawing.New("two-updates.svg", 372)
	d.Text(16, 24, "soft", "A client updates a pod. Another one writes while its function runs.")
	for i, named := range []bool{false, true} {
		w := newWorld(t)
		first := w.create(pod("a")).ResourceVersion
		var asked []string
		other := ""
		out, err := w.update(w.pods.Pod, func(p *corev1.Pod) {
			asked = append(asked, p.ResourceVersion)
			if other == "" {
				label := func(p *corev1.Pod) { p.Labels = map[string]string{"x": "1"} }
				other = w.mustUpdate(w.pods.Pod, label).ResourceVersion
			}
			p.Annotations = map[string]string{"y": "1"}
			if named {
				p.ResourceVersion = first
			}
		})
		y := 84 + i*158
		says := "it names no version"
		if named {
			says = "it names version " + first
		}
		d.Text(16, y-24, "bold", "%s", says)
		d.Text(16, y+40, "", "the function")
		d.Text(16, y+84, "", "the other")
		d.Path("way", "M120 %dH486M120 %dH486", y+36, y+80)
		for k, rv := range asked {
			x := 140 + k*230
			d.In("acts", func() { d.Box(x, y+18, 112, 34, "fill") })
			d.Text(x+56, y+10, "mid", "is given %s", rv)
		}
		d.In("kept", func() { d.Box(262, y+62, 92, 34, "fill") })
		d.Text(308, y+116, "mid", "writes %s", other)
		if err != nil {
			wantStatus(t, err, 409, "Conflict")
			d.Text(500, y+40, "bold", "409, no write")
			continue
		}
		require.Equal(t, 2, len(asked), "calls")
		d.Text(500, y+40, "bold", "writes %s", out.ResourceVersion)
	}
	d.Check(t)
}
