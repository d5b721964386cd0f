package takes

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/check/sandboxtest"
	"listwatch/internal/observe/probe"
	"listwatch/internal/play/sandbox"
)

// numbers is the one story that all chapters tell, each from its own station: three pods, five watchers, the versions 8
// to 40.
type numbers struct {
	began   time.Duration
	records []probe.Record
	names   map[string]string // of watchers, by their number in the server: "w7" is the sleeper
}

const (
	informerAgent = "listwatch-informer"
	sleeper       = "the sleeper"
)

// playNumbers is the plot.
func playNumbers(t *testing.T) (n numbers) {
	sandboxtest.Run(t, 1<<16, func(t *testing.T, w *sandboxtest.World) {
		client := w.Pipeline.Client.NewClient("kubectl", nil)
		create := func(name, app string) {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": app}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/c"}}},
			}
			require.NoError(t, client.Post().Namespace("default").Resource("pods").Body(pod).Do(t.Context()).Error())
		}
		patch := func(name string, body []byte) {
			pods := client.Patch(types.MergePatchType).Namespace("default").Resource("pods")
			require.NoError(t, pods.Name(name).Body(body).Do(t.Context()).Error())
		}
		label := func(name, key, value string) {
			patch(name, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, key, value))
		}
		turn := func(name, target, value string) {
			if _, err := w.Sandbox.Turn(t.Context(), nil, sandbox.Knob{Name: name, Target: target,
				Value: value}); err != nil {
				t.Fatal(err)
			}
		}
		first := w.Log.Last()
		n.names = map[string]string{}
		open := func(name, version string, options sandbox.WatcherOptions) {
			before := w.Log.Last()
			options.ResourceVersion = version
			_, _, err := w.Sandbox.AddWatcher(t.Context(), nil, options)
			require.NoError(t, err)
			synctest.Wait()
			records, _ := w.Log.Since(nil, before, 1<<16)
			for i := range records {
				if records[i].Point == probe.WatcherAdded {
					n.names[records[i].Subject] = name
				}
			}
		}
		for _, each := range []struct{ name, labels, fields string }{
			{"all", "", ""}, {"app=web", "app=web", ""}, {"node-1", "", "spec.nodeName=node-1"}, {"unassigned", "",
				"spec.nodeName="}, {sleeper, "", ""},
		} {
			open(each.name, "0", sandbox.WatcherOptions{Resource: "pods", LabelSelector: each.labels,
				FieldSelector: each.fields})
			if each.name == sleeper {
				watchers := w.Sandbox.Watchers()
				turn("line.stall", watchers[len(watchers)-1].UserAgent, "true")
			}
		}
		time.Sleep(time.Second)
		for _, pod := range []string{"a", "b", "c"} {
			create(pod, map[string]string{"a": "web", "b": "db", "c": "web"}[pod])
			time.Sleep(4 * time.Second) // bound, arrived, running
		}
		label("a", "app", "db")
		time.Sleep(time.Second)
		turn("line.drop", informerAgent, "")
		synctest.Wait() // the informer has seen the end before the next change
		label("b", "app", "web")
		label("c", "n", "0")
		time.Sleep(5 * time.Second)
		// From here the observer takes a second for each call, and with the first change in hand the informer stands
		// still while four more come.
		turn("ring.capacity", "pods", "10")
		turn("handler.delay", "observer", "1s")
		w.Log.Gate().Close(probe.Query{Station: probe.FIFO, Subject: "informer"})
		for i := range 18 {
			if i == 5 {
				w.Log.Gate().Release()
				synctest.Wait()
			}
			label("c", "n", fmt.Sprint(i+1))
			// Those from 29 to 34 come at once: one of them is too much for the sleeper, and which one differs from
			// time to time.
			if i < 6 || i > 11 {
				time.Sleep(50 * time.Millisecond)
			}
		}
		time.Sleep(2 * time.Second)
		open("the latecomer", "20", sandbox.WatcherOptions{Resource: "pods"})
		synctest.Wait()
		n.records, _ = w.Log.Since(nil, first, 1<<16)
		n.began = n.records[0].Time
	})
	return n
}

// scene is what a chapter shows of the story.
type scene struct {
	chapter string
	tell    teller
	// the rows are one goroutine's, in its order; otherwise those of one moment stand in the order of the path
	logged bool
}

// teller reports whether a record belongs to a scene.
type teller func(n *numbers, r *probe.Record) bool

// heading begins the part of a chapter's README that tells the story, and tableHead the table in it. What is said
// before the table is written by hand.
const (
	heading   = "### The story in numbers\n"
	tableHead = "| at | version | what happens |\n|--:|--:|---|\n"
)

var scenes = []scene{
	{chapter: "01-storage", tell: at(rvs(8, 9, 12, 16, 20, 21, 22, 40), "", probe.TxnCommitted)},
	{chapter: "02-etcd3", tell: at(rvs(20), "", probe.TxnCommitted,
		probe.Etcd3IncomingSent, probe.Etcd3IncomingReceived, probe.Etcd3ResultSent)},
	{chapter: "03-reflector", logged: true,
		tell: at(rvs(0, 19, 20, 21, 22), "informer", probe.ReflectorReceived, probe.ReflectorWatching,
			probe.ReflectorWatchEnded)},
	{chapter: "04-watchcache",
		tell: either(at(rvs(8, 20, 40), "", probe.RingAppend), func(_ *numbers, r *probe.Record) bool {
			return is(r, probe.RingResize) || is(r, probe.FrameWritten) && r.Type == string(watch.Error)
		})},
	{chapter: "05-cachewatcher", tell: ours(rvs(20, 21), probe.ResultSent)},
	{chapter: "06-cacher",
		tell: either(at(rvs(8, 9, 20), "", probe.DispatchStarted), func(n *numbers, r *probe.Record) bool {
			return is(r, probe.WatcherForced) && n.names[r.Subject] == sleeper
		})},
	{chapter: "07-registry", logged: true, tell: at(nil, "", probe.PredicateChosen)},
	{chapter: "08-handlers", tell: ours(rvs(20), probe.FrameWritten, probe.WireFlushed)},
	{chapter: "09-listwatch", logged: true,
		tell: at(rvs(0, 20, 21, 22), "informer", probe.FrameDecoded, probe.StreamEnded)},
	{chapter: "10-deltafifo", logged: true,
		tell: at(rvs(23, 24, 25, 26, 27), "informer", probe.FIFOAdded, probe.FIFOPopped)},
	{chapter: "11-indexer", tell: at(rvs(8, 12, 16, 20), "informer", probe.IndexerUpdated)},
	{chapter: "12-processor",
		tell: at(rvs(23, 24, 25, 40), "observer", probe.HandlerCalled, probe.HandlerReturned, probe.PendingPushed,
			probe.PendingPopped)},
	{chapter: "13-informer",
		tell: either(at(rvs(20), "informer", probe.FrameDecoded, probe.ReflectorReceived, probe.FIFOAdded,
			probe.FIFOPopped, probe.IndexerUpdated), at(rvs(20), "observer", probe.HandlerCalled))},
	{chapter: "14-controllers",
		tell: either(at(rvs(9), "", probe.TxnCommitted), func(_ *numbers, r *probe.Record) bool {
			return r.Subject == "scheduler" && r.Key == "default/a" && is(r, probe.WorkAdded, probe.WorkGot)
		})},
	{chapter: "15-pipeline", tell: at(rvs(9), "", probe.TxnCommitted, probe.ReflectorReceived)},
}

func rvs(list ...uint64) []uint64 { return list }

func is(r *probe.Record, points ...probe.Point) bool {
	return len(points) == 0 || slices.Contains(points, r.Point)
}

// at tells the records of some points, and if they are given only of these versions and of this subject.
func at(versions []uint64, subject string, points ...probe.Point) teller {
	return func(_ *numbers, r *probe.Record) bool {
		return is(r, points...) && (versions == nil || slices.Contains(versions, r.RV)) && (subject == "" ||
			r.Subject == subject)
	}
}

// ours tells the records of our watchers alone. The sleeper is left out: how much the connection holds for it differs
// by an event from time to time.
func ours(versions []uint64, points ...probe.Point) teller {
	tell := at(versions, "", points...)
	return func(n *numbers, r *probe.Record) bool {
		return n.names[r.Subject] != "" && n.names[r.Subject] != sleeper && tell(n, r)
	}
}

func either(one, other teller) teller {
	return func(n *numbers, r *probe.Record) bool { return one(n, r) || other(n, r) }
}

var watcherName = regexp.MustCompile(`\bw\d+\b`)

// table tells a scene.
func (n *numbers) table(s scene) string {
	var told []probe.Record
	for _, r := range n.records {
		if r.Resource == "pods" && s.tell(n, &r) {
			told = append(told, r)
		}
	}
	if !s.logged {
		slices.SortStableFunc(told, func(a, b probe.Record) int {
			return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.RV, b.RV), cmp.Compare(a.Point, b.Point),
				cmp.Compare(n.names[a.Subject], n.names[b.Subject]), cmp.Compare(a.Subject, b.Subject))
		})
	}
	var out strings.Builder
	out.WriteString(tableHead)
	for _, r := range told {
		says := watcherName.ReplaceAllStringFunc(r.Sentence(), func(id string) string {
			return cmp.Or(n.names[id], id)
		})
		version := fmt.Sprint(r.RV)
		if r.RV == 0 {
			version = "–"
		}
		fmt.Fprintf(&out, "| %.2f s | %s | %s |\n", (r.Time - n.began).Seconds(), version, strings.NewReplacer("|",
			`\|`, "<", "&lt;", "_", `\_`).Replace(says))
	}
	return out.String()
}

// TestTheStoryInNumbersStandsInEveryChapter plays the story and compares what the chapters say. With -update it writes
// it.
func TestTheStoryInNumbersStandsInEveryChapter(t *testing.T) {
	n := playNumbers(t)
	for again := 0; *update && again < 5; again++ { // what is written must be the same each time
		other := playNumbers(t)
		for _, s := range scenes {
			was, is := n.table(s), other.table(s)
			assert.Equal(t, is, was, "%s: one time\n%sthe other\n%s", s.chapter, was, is)
		}
	}
	for _, s := range scenes {
		file := filepath.Join("..", "..", "..", "chapters", s.chapter, "README.md")
		text := require.Value(os.ReadFile(file))(t)
		before, rest, titled := strings.Cut(string(text), heading)
		lead, rest, begun := strings.Cut(rest, tableHead)
		_, rest, ended := strings.Cut(rest, "\n\n")
		found := titled && begun && ended && !strings.Contains(lead, "\n## ")
		require.True(t, found, "%s: no table below %q", file, heading)
		want := before + heading + lead + n.table(s) + "\n" + rest
		switch {
		case want == string(text):
		case *update:
			require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
		default:
			t.Errorf("%s is stale: go test ./internal/observe/takes -run Numbers -update\n%s", file, n.table(s))
		}
	}
}
