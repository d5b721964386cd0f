package scenario

import (
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/check/sandboxtest"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/rules"
	"listwatch/internal/play/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inEnv runs body in a bubble with a whole pipeline that has settled. alone adds an Operator, for stories that need a
// world of their own.
func inEnv(t *testing.T, alone bool, body func(t *testing.T, w *Env)) {
	sandboxtest.Run(t, 1<<18, func(t *testing.T, world *sandboxtest.Fixture) {
		w := &Env{Pipeline: world.Pipeline, Sandbox: world.Sandbox, Log: world.Log, Probe: world.Probe,
			Clock: world.Clock}
		if alone {
			w.Operator = world
		}
		body(t, w)
	})
}

// sayings maps each story's id to a regular expression that the outcome ([Seen].Saw) must match.
var sayings = map[string]string{
	"loses-nothing":   `all ten, in order.*refused a watch of events`,
	"slow-watcher":    `held 10 in its input and 10 in its result.*closed 0 of the others`,
	"trigger-index":   `received DELETED and \S+ ADDED.*other 998 nodes received nothing`,
	"selector":        `as tier=green.*its creation with 409`,
	"bookmarks":       `had lost: 410`,
	"missed-deletion": `410: "too old resource version.*DeletedFinalStateUnknown`,
	"resync":          `with 6 updates.*SyncAll.*3 times.*asked the server for nothing`,
	"slow-handler":    `2\d changes waited`,
	"stale-write":     `answered 409.*After a new read the write succeeded`,
	"watch-list":      `one answer of \d{4,} bytes.*in 13 frames`,
	"server-restart":  `with 429 and.Retry-After.*The 900 clients.*The 100 others got 410`,
	"restored-etcd":   `refused with 504.*created at \d+, the informer does not`,
	"fail-over":       `nothing was lost, nothing came twice`,
	"two-queues":      `DeltaFIFO gave a1 a2`,
	"tour":            `came back twice`,
	"deployment":      `deployment at \d+.*its pod at \d+.*said so at \d+`,
	"six-pods":        `counted 0, and again 0.*six`,
}

func TestEveryStoryIsPlayedAsItIsTold(t *testing.T) {
	for _, each := range All {
		t.Run(each.ID, func(t *testing.T) {
			require.True(t, sayings[each.ID] != "", "add a row to sayings: what this story says when it was played")
			inEnv(t, each.Alone != "", func(t *testing.T, w *Env) {
				before := w.Sandbox.Knobs()
				began := time.Now()
				seen := require.Value(w.Play(t.Context(), each.ID))(t)
				took := time.Since(began)
				t.Logf("%v: %s", took, seen.Saw)
				w.check(t, seen, sayings[each.ID])
				assert.False(t, took > 15*time.Second && each.Alone == "",
					"the story took %v: a viewer does not wait so long", took)
				time.Sleep(2 * time.Minute) // long enough for a client that was cut off to reconnect
				synctest.Wait()
				after := w.Sandbox.Knobs()
				assert.True(t, len(after.Handlers) == len(before.Handlers) && len(after.Lines) == len(before.Lines) &&
					after.Traffic.Rate == 0 &&
					!slices.ContainsFunc(after.Rings, func(r sandbox.RingInfo) bool { return r.Fixed != 0 }),
					"the story left behind %+v, it began with %+v", after, before)
			})
		})
	}
}

func (w *Env) check(t *testing.T, seen Seen, says string) {
	t.Helper()
	records, ok := w.Log.Since(nil, seen.From, int(seen.To-seen.From))
	require.True(t, ok, "the log has moved on")
	assert.True(t, regexp.MustCompile(says).MatchString(seen.Saw), "it says %q, want a match of %q", seen.Saw, says)
	told, err := Find(seen.ID).Locate(records)
	assert.True(t, err == nil && slices.Equal(told, seen.Beats),
		"its beats are at %v, found again at %v: %v", seen.Beats, told, err)
	for i, beat := range seen.Beats {
		assert.True(t, (i <= 0 || beat.From == seen.Beats[i-1].To) && beat.From >= seen.From && beat.To > beat.From &&
			beat.To <= seen.To, "beat %d plays (%d, %d], in a story of (%d, %d]", i+1, beat.From, beat.To, seen.From,
			seen.To)
	}
	checker := rules.New()
	all, _ := w.Log.Since(nil, w.Log.Oldest()-1, 1<<18)
	for _, breach := range checker.Apply(all) {
		t.Error(breach)
	}
}

func TestEveryStoryIsTold(t *testing.T) {
	ids := map[string]bool{}
	for _, each := range All {
		assert.True(t, each.ID != "" && each.Title != "" && each.Symptom != "" && each.Chapter != "" && !ids[each.ID] &&
			slices.Contains(Groups, each.Group), "%+v: something is missing or unknown, or the id is taken", each)
		ids[each.ID] = true
		most := 7
		if each.Unfolds { // the story goes through all stations
			most = 12
		}
		assert.True(t, len(each.Beats) >= 4 && len(each.Beats) <= most,
			"%s: %d beats, want four to %d", each.ID, len(each.Beats), most)
		asked := 0
		for i, beat := range each.Beats {
			assert.True(t, beat.Say != "" && len(beat.Look) != 0 && len(beat.Rest) != 0,
				"%s: beat %d says %q, looks at %v", each.ID, i+1, beat.Say, beat.Look)
			if q := beat.Question; q != nil {
				if asked++; q.Ask == "" || len(q.Answers) < 2 || len(q.Answers) > 4 || q.Right < 0 ||
					q.Right >= len(q.Answers) {
					t.Errorf("%s: beat %d asks %+v", each.ID, i+1, q)
				}
			}
		}
		assert.True(t, asked != 0, "%s has no question", each.ID)
		assert.True(t, len(each.Moral) > 0, "%s has no moral", each.ID)
	}
}

// TestARunThatDoesNotShowTheMoralIsNotTold plays an unknown story, one with an unmet claim, and a tour that fills a
// watcher until it is closed. The last two must show no beat.
func TestARunThatDoesNotShowTheMoralIsNotTold(t *testing.T) {
	inEnv(t, false, func(t *testing.T, w *Env) {
		assert.Fails(t, assert.ErrorOf(w.Play(t.Context(), "no-such")), apierrors.IsNotFound, "an unknown story")
		unmet, overfull := *Find("two-queues"), *Find("tour")
		require.NoError(t, json.Unmarshal([]byte(`["2+ WatcherForced stream=0"]`), &unmet.Moral))
		overfull.Beats = slices.Clone(overfull.Beats)
		beat := &overfull.Beats[5]
		beat.Do = slices.Clone(beat.Do)
		require.NoError(t, beat.Do[len(beat.Do)-1].UnmarshalText([]byte("fill InputSent stream=0 len=11")))
		for story, want := range map[*Story]string{&unmet: "0 WatcherForced stream=0, want 2+ WatcherForced stream=0",
			&overfull: "1 WatcherForced, want InputSent stream=0 len=11"} {
			require.NoError(t, w.Sandbox.Play(t.Context(), story.ID, func(run *sandbox.Run) error {
				seen, err := newRunner(run, w, story).play()
				told := slices.ContainsFunc(seen.Beats, func(r Range) bool { return r.To > 0 })
				assert.True(t, !told && strings.HasSuffix(seen.Untold, "got "+want),
					"%s: told is %+v, untold %q", story.ID, seen.Beats, seen.Untold)
				return err
			}))
		}
	})
}

// TestABeatWithoutAResourceIsAboutThatOfTheBeatBefore has a second beat that rests at a record without a resource: the
// beat gets the first beat's resource.
func TestABeatWithoutAResourceIsAboutThatOfTheBeatBefore(t *testing.T) {
	story := Story{ID: "x", Beats: make([]Beat, 3)}
	for i, words := range []string{"ReflectorBackoff", "RequestAnswered", "CacherReady resource=pods"} {
		require.NoError(t, json.Unmarshal([]byte(strconv.Quote(words)), &story.Beats[i].Rest))
	}
	ranges := require.Value(story.Locate([]probe.Record{{Seq: 1, Point: probe.ReflectorBackoff, Resource: "backups"},
		{Seq: 2, Point: probe.RequestAnswered}, {Seq: 3, Point: probe.CacherReady, Resource: "pods"}}))(t)
	got := [3]string{ranges[0].Resource, ranges[1].Resource, ranges[2].Resource}
	assert.Equal(t, [3]string{"backups", "backups", "pods"}, got, "resources")
}

func TestTheAddressOfAFormerStoryLeadsToTheOneThatTellsItsIncident(t *testing.T) {
	for id, into := range map[string]string{
		"left-selector": "selector", "not-ready": "server-restart",
		"compaction": "loses-nothing", "ring-wrap": "missed-deletion",
	} {
		story := Find(id)
		assert.True(t, story != nil && story.ID == into, "%s is told by %v, want %s", id, story, into)
	}
}

// A lab's code is broken: here no handler returns. The story waits ten seconds, and keeps the beats before that wait.
func TestInALabTheRecordThatDoesNotComeIsTheSymptom(t *testing.T) {
	inEnv(t, false, func(t *testing.T, w *Env) {
		w.Lab = true
		gate := w.Log.Gate()
		gate.Close(probe.Query{Station: probe.Handler})
		time.AfterFunc(time.Minute, gate.Release) // lets the undo of the story's changes end
		seen := require.Value(w.Play(t.Context(), "slow-handler"))(t)
		assert.True(t, strings.Contains(seen.Symptom, "waited 10s") &&
			strings.Contains(seen.Symptom, "HandlerReturned"), "the symptom: %q", seen.Symptom)
		assert.True(t, seen.Beats[1].To != 0 && seen.Beats[3].To == 0 && seen.Untold != "",
			"got %+v, untold %q: want the beats up to the symptom", seen.Beats, seen.Untold)
	})
}

// TestStoriesWithEtcdAheadOfTheInformer plays the stories that need an Operator after a write of another resource: etcd
// is ahead of the informer's version, and a new server lacks the versions before its own list. No story may fail.
func TestStoriesWithEtcdAheadOfTheInformer(t *testing.T) {
	for _, each := range All {
		if each.Alone == "" {
			continue
		}
		t.Run(each.ID, func(t *testing.T) {
			inEnv(t, true, func(t *testing.T, w *Env) {
				other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "written-last"}}
				require.NoError(t, w.Pipeline.Client.NewClient("other", nil).Post().Resource("namespaces").Body(other).
					Do(t.Context()).Error())
				assert.NoError(t, assert.ErrorOf(w.Play(t.Context(), each.ID)))
			})
		})
	}
}

// TestAStoryWaitsForAReflectorThatWasOftenCutOff plays a story again and again, without pauses, until the reflector's
// delay has reached its maximum. Each run must succeed.
func TestAStoryWaitsForAReflectorThatWasOftenCutOff(t *testing.T) {
	inEnv(t, false, func(t *testing.T, w *Env) {
		for range 20 {
			require.Value(w.Play(t.Context(), "stale-write"))(t)
		}
	})
}

func TestStreamsAreCountedInTheOrderInWhichTheyWereRegistered(t *testing.T) {
	records := []probe.Record{
		{Seq: 1, Point: probe.WatcherAdded, Subject: "w7"},
		{Seq: 2, Point: probe.WatcherAdded, Subject: "w8"},
		{Seq: 3, Point: probe.WireOpened, Subject: "w8", Texts: probe.TextsOf(probe.WireOpened, "story-selector")},
		{Seq: 4, Point: probe.WireOpened, Subject: "w7", Texts: probe.TextsOf(probe.WireOpened, "story-selector")},
	}
	f := newFacts(Find("selector"))
	for i := range records {
		f.add(&records[i])
	}
	assert.EqualSlices(t, []string{"w7", "w8"}, f.lanes)
}

// TestWhyARequestThatWaitsFailedIsSaid checks that expand returns the first error, which is the concurrent request's.
func TestWhyARequestThatWaitsFailedIsSaid(t *testing.T) {
	done := make(chan func() error, 1)
	done <- func() error { return io.ErrUnexpectedEOF }
	s := &runner{later: map[string]chan func() error{"list": done}}
	_, err := s.expand("${list.rv} of $nothing")
	assert.True(t, errors.Is(err, io.ErrUnexpectedEOF), "got %v", err)
}
