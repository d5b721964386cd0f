package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"listwatch/internal/compat/program"
	"listwatch/internal/fold"
	"listwatch/internal/fold/foldtest"
	"listwatch/internal/probe"
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
		const module = await import("/viz/assets/log/fold.js");
		const { newWhy } = await import("/viz/assets/log/why.js");
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
	literal, err := json.Marshal(string(foldtest.Feed(records)))
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

	_, records := readRecording(t, file)
	if len(records) < 500 {
		t.Fatalf("only %d records: nothing happened", len(records))
	}
	for len(records) > 0 {
		n := min(len(records), 97)
		w.apply(t, records[:n])
		records = records[n:]
	}
}

// TestThePageFoldsAnythingAsTheProgramDoes feeds both with what no run would produce soon.
func TestThePageFoldsAnythingAsTheProgramDoes(t *testing.T) {
	t.Parallel()
	w := newTwin(t, startViz(t, "-demo=false", "-controllers=false"))
	for seed := range uint64(10) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w.reset(t)
			anything := foldtest.NewAnything(seed)
			for range 40 {
				w.apply(t, anything.Records(50))
				w.compareWhy(t)
			}
		})
	}
}
