package sandbox

import (
	"errors"
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
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/check/apitest"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

func (w *world) turn(t *testing.T, name, target, value string) {
	t.Helper()
	_, err := w.Turn(t.Context(), nil, Knob{name, target, value})
	require.NoError(t, err, "%s of %s to %s", name, target, value)
}

// since returns the records after seq that match accepts.
func (w *world) since(t *testing.T, seq uint64, match func(r *probe.Record) bool) []probe.Record {
	t.Helper()
	synctest.Wait()
	records, ok := w.log.Since(nil, seq, 1<<16)
	require.True(t, ok, "the log has moved on")
	return slices.DeleteFunc(records, func(r probe.Record) bool { return !match(&r) })
}

func is(point probe.Point, subject string) func(*probe.Record) bool {
	return func(r *probe.Record) bool { return r.Point == point && (subject == "" || r.Subject == subject) }
}

func letters(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("k%02d", i))
	}
	return names
}

func (w *world) createAll(t *testing.T, names []string) {
	t.Helper()
	for _, name := range names {
		w.create(t, apitest.Pod(name, corev1.RestartPolicyAlways))
	}
}

// settle waits until nothing more happens. Do not call it in a held world if a goroutine might wait for a mutex whose
// holder is at a gate: time in the bubble would stop, because such a wait does not block durably.
func (w *world) settle() {
	time.Sleep(time.Minute)
	synctest.Wait()
}

// TestEveryKnobShowsInTheLog requires an effect in the log within a second of the bubble's time.
func TestEveryKnobShowsInTheLog(t *testing.T) {
	informerIs := userAgent + "-informer"
	tests := map[string]struct {
		before func(t *testing.T, w *world)
		knob   Knob
		after  func(t *testing.T, w *world)
		effect func(r *probe.Record) bool
	}{
		"handler.add":    {knob: Knob{"handler.add", "slowpoke", ""}, effect: is(probe.ListenerAdded, "slowpoke")},
		"handler.remove": {knob: Knob{"handler.remove", observer, ""}, effect: is(probe.ListenerRemoved, observer)},
		"handler.delay": {
			knob: Knob{"handler.delay", observer, "10s"}, after: func(t *testing.T, w *world) {
				w.createAll(t, letters(3))
			},
			effect: is(probe.PendingPushed, observer),
		},
		"line.drop": {knob: Knob{"line.drop", informerIs, ""}, effect: is(probe.ReflectorWatchEnded, "informer")},
		"line.cut":  {knob: Knob{"line.cut", informerIs, "true"}, effect: is(probe.ReflectorWatchEnded, "informer")},
		"line.stall": {
			before: func(t *testing.T, w *world) { w.addWatcher(t, WatcherOptions{Resource: "pods"}) },
			knob:   Knob{"line.stall", userAgent + "-page-1", "true"}, after: func(t *testing.T, w *world) {
				w.createAll(t, letters(40))
			},
			effect: is(probe.WatcherForced, ""),
		},
		"ring.capacity": {knob: Knob{"ring.capacity", "pods", "8"}, effect: is(probe.RingResize, "cacher")},
		"etcd.compact": {
			knob:   Knob{"etcd.compact", "", ""},
			after:  func(t *testing.T, w *world) { w.watchFrom(t, "events", "1") },
			effect: is(probe.WatchChanError, ""),
		},
		"traffic.rate": {knob: Knob{"traffic.rate", "", "100"}, effect: func(r *probe.Record) bool {
			return r.Point == probe.TxnCommitted && strings.Contains(r.Key, "/t-")
		}},
		"watchers.remove": {
			before: func(t *testing.T, w *world) { w.addWatcher(t, WatcherOptions{Resource: "pods", WatchList: true}) },
			knob:   Knob{"watchers.remove", "", ""}, effect: is(probe.WatcherRemoved, ""),
		},
	}
	for name, each := range (&Sandbox{}).table() {
		// compat/e2e tests the knobs that cannot be turned in this world
		_, ok := tests[name]
		assert.True(t, ok || each.whyNot != "", "%s is not tested", name)
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inWorld(t, nil, func(t *testing.T, w *world) {
				if test.before != nil {
					test.before(t, w)
				}
				seq := w.log.Last()
				w.turn(t, test.knob.Name, test.knob.Target, test.knob.Value)
				if test.after != nil {
					test.after(t, w)
				}
				time.Sleep(time.Second)
				turned := w.since(t, seq, is(probe.KnobTurned, ""))
				effects := w.since(t, seq, test.effect)
				assert.True(t, len(turned) == 1 && len(effects) != 0 && effects[0].Seq >= turned[0].Seq,
					"turned %v, effects %v: want one, and then at least one", turned, effects)
				w.reset(t)
			})
		})
	}
}

func (w *world) addWatcher(t *testing.T, options WatcherOptions) string {
	t.Helper()
	added, _, err := w.AddWatcher(t.Context(), nil, options)
	require.NoError(t, err)
	return added.ID
}

// watchFrom begins a watch at an old version and waits for the watch's end.
func (w *world) watchFrom(t *testing.T, resource, rv string) {
	t.Helper()
	request := w.client.Get().Resource(resource).Param("watch", "true").Param("resourceVersion", rv)
	err := request.Do(t.Context()).Error()
	require.True(t, err == nil || apierrors.IsResourceExpired(err), err)
}

func (w *world) reset(t *testing.T) {
	t.Helper()
	require.NoError(t, assert.ErrorOf(w.Reset(t.Context())), "reset")
	w.settle() // clients that were cut off reconnect
}

// TestAKindInAGroupIsWatched opens a watcher of a kind outside core/v1, and expects one stream with the created object.
func TestAKindInAGroupIsWatched(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		began := w.log.Last()
		w.addWatcher(t, WatcherOptions{Resource: "resourceclaims"})
		body := []byte(`{"metadata":{"name":"a"},"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim"}`)
		client := w.client.WithAPIPath("/apis/resource.k8s.io/v1")
		created := client.Post().Namespace("default").Resource("resourceclaims").Body(body).Do(t.Context())
		require.NoError(t, created.Error())
		w.settle()
		of := func(point probe.Point, eventType string) int {
			return len(w.since(t, began, func(r *probe.Record) bool {
				return r.Point == point && r.Resource == "resourceclaims" && r.Type == eventType
			}))
		}
		assert.Equal(t, 2, of(probe.FrameWritten, "ADDED"), "frames; one is the garbage collector's")
		assert.Equal(t, 1, of(probe.WireOpened, ""), "streams that it has opened")
	})
}

func TestResetRestoresEverything(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		before := w.Knobs()
		w.createAll(t, letters(20))
		w.addWatcher(t, WatcherOptions{Resource: "pods"})
		w.turn(t, "handler.add", "slowpoke", "")
		w.turn(t, "handler.delay", "slowpoke", "1m")
		w.turn(t, "handler.delay", observer, "1m")
		w.turn(t, "ring.capacity", "pods", "4")
		w.turn(t, "line.stall", userAgent+"-page-1", "true")
		w.turn(t, "line.cut", userAgent+"-informer", "true")
		w.turn(t, "traffic.rate", "", "50")
		time.Sleep(10 * time.Second)
		began := time.Now()
		require.Value(w.Reset(t.Context()))(t)
		took := time.Since(began)
		assert.True(t, took <= time.Second, "the reset took %v", took)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		after := w.Knobs()
		after.Traffic.Written = before.Traffic.Written
		got, want := fmt.Sprintf("%+v", after), fmt.Sprintf("%+v", before)
		assert.Equal(t, want, got, "after the reset:\n%s\nwant\n%s", got, want)
		assert.Equal(t, 0, len(w.pipeline.Client.Pods().Informer().GetIndexer().List()), "the local store holds pods")
	})
}

func TestWhatIsRefusedChangesNothing(t *testing.T) {
	slow := func(config *Config, _ *pipeline.ClientConfig) { config.MaxTraffic = 100 }
	inWorld(t, slow, func(t *testing.T, w *world) {
		seq, before, long := w.log.Last(), w.knobs(), strings.Repeat("x", 300)
		assert.Equal(t, long[:63], short(long[:63]+"é"), "a text that is cut within a letter")
		for _, knob := range []Knob{
			{}, {"no.such", "", ""}, {"handler.delay", "nobody", "1s"}, {"handler.delay", observer, "soon"},
			{"handler.delay", observer, "2h"}, {"handler.delay", observer, long},
			{"handler.add", "", ""}, {"handler.add", observer, ""}, {"handler.remove", "nobody", ""},
			{"line.cut", "", "true"}, {"line.cut", "nobody", "true"}, {"line.cut", long, "true"},
			{"line.stall", "nobody", "true"}, {"line.stall", "x", "perhaps"}, {"line.drop", "nobody", ""},
			{"ring.capacity", "cars", "10"}, {"ring.capacity", "pods", "-1"}, {"ring.capacity", "pods", "many"},
			{"traffic.rate", "", "101"}, {"traffic.rate", "", ""}, {"etcd.restart", "", ""}, {long, "", ""},
			{"switch", "fifo", "delta"},
		} {
			var status apierrors.APIStatus
			_, err := w.Turn(t.Context(), nil, knob)
			assert.True(t, errors.As(err, &status) && status.Status().Code < 500 && len(err.Error()) <= 200,
				"%.20v: got %v, want a short refusal", knob, err)
		}
		for _, options := range []WatcherOptions{
			{Resource: "cars"}, {Resource: ""}, {Resource: "a/b"}, {Resource: long}, {ResourceVersion: "new"},
			{LabelSelector: "="}, {FieldSelector: "spec.colour=blue"},
		} {
			is := apierrors.IsNotFound
			if options.ResourceVersion+options.LabelSelector+options.FieldSelector != "" {
				options.Resource, is = "pods", apierrors.IsBadRequest
			}
			_, _, err := w.AddWatcher(t.Context(), nil, options)
			assert.Fails(t, err, is, "watch %.20v", options)
		}
		after := w.knobs()
		assert.True(t, after == before && len(w.Watchers()) == 0, "kept:\n%s\nbefore\n%s", after, before)
		turned := w.since(t, seq, is(probe.KnobTurned, ""))
		assert.True(t, len(turned) == 0, "got %v, want nothing in the log", turned)
	})
}

func TestTrafficKeepsItsRate(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		w.turn(t, "traffic.rate", "", "500")
		time.Sleep(4 * time.Second)
		w.turn(t, "traffic.rate", "", "0")
		synctest.Wait()
		info := w.traffic.info()
		assert.True(t, info.Written >= 1900 && info.Written <= 2100 && info.Error == "",
			"got %+v after four seconds, want about 2000 written", info)
		time.Sleep(time.Second)
		assert.Equal(t, info.Written, w.traffic.info().Written, "written after the end")
	})
}

func TestNothingHoldsUpTheEndAndNothingIsTakenAfterIt(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		w.turn(t, "handler.delay", observer, "1m")
		w.createAll(t, letters(50))
		began := time.Now()
		w.stop()
		took := time.Since(began)
		assert.True(t, took <= time.Second, "the end took %v", took)
		_, turning := w.Turn(t.Context(), nil, Knob{"handler.add", "late", ""})
		_, resetting := w.Reset(t.Context())
		playing := w.Play(t.Context(), "late", func(*Run) error { return nil })
		for what, err := range map[string]error{"a knob": turning, "a reset": resetting, "a story": playing} {
			assert.Fails(t, err, apierrors.IsServiceUnavailable, what)
		}
	})
}

// TestEveryKnobThatIsNamedIsOne checks the names of knobs that no compiler checks: in the page's buttons and scripts,
// in stories, and in the log's sentences about knobs.
func TestEveryKnobThatIsNamedIsOne(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		named := regexp.MustCompile(`(?:name: |data-knob=|knob === |Knob\{Name: )"([a-z]+\.[a-z]+)"|` +
			`(?:- turn |KnobTurned name=|"name=)([a-z]+\.[a-z]+)`)
		const root = "../../../"
		found := 0
		for _, pattern := range []string{"viz/*/*.js", "viz/*/*.templ", "internal/play/scenario/stories/*.yaml",
			"internal/observe/probe/points.go"} {
			files := require.Value(filepath.Glob(root + pattern))(t)
			for _, file := range files {
				for _, name := range named.FindAllStringSubmatch(string(require.Value(os.ReadFile(file))(t)), -1) {
					found++
					_, is := w.Sandbox.knobs[name[1]+name[2]]
					assert.True(t, is, "%s names the knob %s, which does not exist", file, name[1]+name[2])
				}
			}
		}
		assert.True(t, found > 20, "found %d names of knobs", found)
	})
}
