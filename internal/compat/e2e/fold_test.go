package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"listwatch/internal/compat/program"
	"listwatch/internal/fold"
	"listwatch/internal/probe"
	"listwatch/internal/recording"
)

// twin is the page's fold, running in a browser beside ours.
type twin struct {
	page *page
	ours *fold.State
}

// newTwin loads the page's fold and its table of points from the running program.
func newTwin(t *testing.T, v *viz) *twin {
	t.Helper()
	p := openPage(t, v.URL+"/book/") // any page of the program: its policy lets scripts of its own in
	evaluate[bool](t, p, `(async () => {
		const module = await import("/viz/assets/fold.js");
		const { newWhy } = await import("/viz/assets/why.js");
		const table = await (await fetch("/viz/points")).json();
		window.twin = { newWhy, module, fold: module.newFold(table), state: module.newState() };
		return true;
	})()`)
	return &twin{page: p, ours: fold.New()}
}

// reset begins again on both sides.
func (w *twin) reset(t *testing.T) {
	t.Helper()
	evaluate[bool](t, w.page, `(window.twin.state = window.twin.module.newState(), true)`)
	w.ours = fold.New()
}

// apply folds records on both sides, ours straight and the page's as they arrive on its feed, and compares.
func (w *twin) apply(t *testing.T, records []probe.Record) {
	t.Helper()
	feed := []byte{'['}
	for i := range records {
		if i > 0 {
			feed = append(feed, ',')
		}
		feed = fold.AppendRecord(feed, &records[i])
	}
	literal, err := json.Marshal(string(append(feed, ']')))
	if err != nil {
		t.Fatal(err)
	}
	theirs := evaluate[string](t, w.page, fmt.Sprintf(`(() => {
		window.twin.fold.apply(window.twin.state, JSON.parse(%s));
		return window.twin.module.hash(window.twin.state);
	})()`, literal))
	w.ours.Apply(records)
	if theirs == w.ours.Hash() {
		return
	}
	got := evaluate[string](t, w.page, "window.twin.module.canonical(window.twin.state)")
	want := string(w.ours.Canonical())
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	from := max(0, at-200)
	t.Fatalf("after record %d the states differ (hash %s in the page, %s here):\npage …%.400s\nhere …%.400s",
		w.ours.Seq, theirs, w.ours.Hash(), got[from:], want[from:])
}

// compareWhy asks both sides of every queue why it is blocked, and for the causes.
func (w *twin) compareWhy(t *testing.T) {
	t.Helper()
	theirs := evaluate[string](t, w.page, `(() => {
		const res = window.twin.state.resources.pods;
		const { why, causes } = window.twin.newWhy(window.twin.fold.infos);
		const chains = [];
		for (const id of Object.keys(res.subjects).sort()) {
			for (const queue of Object.keys(res.subjects[id].queues).sort()) chains.push(why(res, queue, id));
		}
		return window.twin.module.canonical({ chains, causes: causes(res) });
	})()`)
	pods := w.ours.Resources["pods"]
	all := struct {
		Chains [][]fold.Link `json:"chains"`
		Causes []fold.Link   `json:"causes"`
	}{Chains: [][]fold.Link{}, Causes: append([]fold.Link{}, pods.Causes()...)}
	for _, id := range slices.Sorted(maps.Keys(pods.Subjects)) {
		for _, queue := range slices.Sorted(maps.Keys(pods.Subjects[id].Queues)) {
			all.Chains = append(all.Chains, pods.Why(queue, id))
		}
	}
	var got, want any
	ours, err := json.Marshal(all)
	if err := errors.Join(err, json.Unmarshal(ours, &want), json.Unmarshal([]byte(theirs), &got)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("why, after record %d (-here +page):\n%.2000s", w.ours.Seq, diff)
	}
}

func TestThePageFoldsARecordingAsTheProgramDoes(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.listwatch")
	v := startViz(t, "-record", file)
	w := newTwin(t, v)
	k := kubectlFor(t, v)
	watch := program.Start(t, k.Command("get", "pods", "-w", "-l", "app=a"))
	for _, name := range []string{"a", "b", "c"} {
		create(t, k, podManifest(name))
	}
	program.Eventually(t, patience, func() (bool, string) {
		out := k.Run(t, "get", "pods", "a", "b", "c")
		return strings.Count(out, "Running") == 3, out
	})
	k.Run(t, "label", "pod", "a", "app=other", "--overwrite")
	k.Run(t, "delete", "pod", "b")
	watch.Kill()
	v.Interrupt(t)
	if code := v.ExitCode(t, program.EndsWithin); code != 0 {
		t.Fatalf("exit status %d\n%s", code, v.Stderr.String())
	}

	recorded, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer recorded.Close()
	_, records, err := recording.Read(recorded)
	if err != nil {
		t.Fatal(err)
	}
	if len(records) < 500 {
		t.Fatalf("only %d records: nothing happened", len(records))
	}
	for len(records) > 0 {
		n := min(len(records), 97)
		w.apply(t, records[:n])
		records = records[n:]
	}
}

// TestThePageFoldsAnythingAsTheProgramDoes feeds both with what no run would produce soon: receives before sends,
// queues that shrink by many, subjects that never opened, gaps, and texts that mean harm.
func TestThePageFoldsAnythingAsTheProgramDoes(t *testing.T) {
	t.Parallel()
	w := newTwin(t, startViz(t, "-demo=false", "-controllers=false"))
	for seed := range uint64(10) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w.reset(t)
			g := &generator{rand: rand.New(rand.NewPCG(seed, 0))}
			for range 40 {
				w.apply(t, g.records(50))
				w.compareWhy(t)
			}
		})
	}
}

// generator makes records that obey the table of points and nothing else.
type generator struct {
	rand *rand.Rand
	last probe.Record
}

var hostile = []string{
	"", "plain", "<script>alert(1)</script>", `"quoted" \back\slash`, "line\nbreak\u2028and\u2029more", "\x00\x1f\x7f",
	"😀" + strings.Repeat("x", 238) + "😀😀", strings.Repeat("ü", 300), "\xff\xfe no UTF-8", "__proto__", "constructor", "&amp;<>",
}

func (g *generator) pick(from ...string) string { return from[g.rand.IntN(len(from))] }

func (g *generator) records(n int) []probe.Record {
	records := make([]probe.Record, 0, n)
	points := probe.Points()
	for range n {
		r := probe.Record{
			Seq:      g.last.Seq + 1,
			Time:     g.last.Time + time.Duration(g.rand.IntN(1e6)),
			Point:    points[g.rand.IntN(len(points))],
			Resource: g.pick("pods", "pods", "pods", "nodes", "", "__proto__", "constructor"), // a recording can say anything
			Subject:  g.pick("w1", "w2", "l1", "cacher", "etcd3-1", "informer", "", "__proto__", "toString"),
			Type:     g.pick("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "Sync", ""),
			Key:      g.pick("/registry/pods/default/a", "default/a", "default/b", "", hostile[g.rand.IntN(len(hostile))]),
			RV:       g.rand.Uint64N(20) * g.rand.Uint64N(1<<60),
			Text:     hostile[g.rand.IntN(len(hostile))],
		}
		for i := range r.Args {
			r.Args[i] = g.rand.IntN(40)
		}
		if g.rand.IntN(200) == 0 {
			r.Seq += g.rand.Uint64N(10) // a gap
		}
		g.last = r
		records = append(records, r)
	}
	return records
}
