package pipeline

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
	"listwatch/internal/server/mvcc"
)

// inTown runs body in a bubble with a server half that can be restarted, and the whole client half in front of it.
func inTown(t *testing.T, change func(*ClientConfig), body func(t *testing.T, s *site, w *world)) {
	bubble.Test(t, func(t *testing.T) {
		s := &site{store: mvcc.New(clock.RealClock{})}
		transport := &http.Transport{DialContext: s.dial}
		s.client = s.rest(transport)
		s.startServer(t)
		log := probe.NewLog(clock.RealClock{}, 1<<16)
		config := ClientConfig{
			Base: &url.URL{Scheme: "http", Host: "pipe"}, HTTP: &http.Client{Transport: transport},
			Clock: clock.RealClock{},
			Probe: probe.New(log), UseWatchList: true, Controllers: true,
		}
		change(&config)
		client, err := NewClient(config)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{}) // closed when the client half has ended
		new(routine.Group).Go(context.Background(), "pipeline.Run", func(context.Context) {
			defer close(ended)
			client.Run(ctx)
		})
		defer func() {
			cancel()
			<-ended
			s.stop()
		}()
		require.NoError(t, client.WaitReady(ctx))
		time.Sleep(time.Minute) // every client is there, and has had a bookmark
		synctest.Wait()
		body(t, s, &world{client: s.client, log: log})
	})
}

// TestTheLifeOfOnePodGoesOnAfterARestartOfTheServer crashes the server half in the middle of a pod's life: all
// connections break, the new one's caches have forgotten the past. No controller remembers anything that does not stand
// in the pod, so the life goes on where it was, and what each of them receives of it is the same history, once, as if
// nothing had happened: those who had seen the newest version go on from there, and those who had not are told so by
// 410, list, and find nothing new.
func TestTheLifeOfOnePodGoesOnAfterARestartOfTheServer(t *testing.T) {
	ended := map[string][]string{
		"informer": {"ADDED r1", "MODIFIED r2", "MODIFIED r3", "MODIFIED r4", "MODIFIED r5", "MODIFIED r6",
			"DELETED r7"},
		"scheduler-informer": {"ADDED r1", "MODIFIED r2", "MODIFIED r3", "MODIFIED r4", "DELETED r5"},
		"kubelet-node-1":     {"ADDED r2", "MODIFIED r3", "MODIFIED r4", "MODIFIED r5", "MODIFIED r6", "DELETED r7"},
	}
	// A pod that runs when it is deleted has time to stop: r5 says that it is to go, r6 that no time is left, r7 is its
	// end.
	stopped := map[string][]string{
		"informer": ended["informer"],
		"scheduler-informer": {"ADDED r1", "MODIFIED r2", "MODIFIED r3", "MODIFIED r4", "MODIFIED r5", "MODIFIED r6",
			"DELETED r7"},
		"kubelet-node-1": ended["kubelet-node-1"],
	}
	for _, tc := range []struct {
		name           string
		restart        corev1.RestartPolicy
		crash          time.Duration // after its creation
		delete, grace  time.Duration // after its creation
		crashOnceAgain time.Duration // after the first
		want           map[string][]string
	}{
		{"when it has arrived", corev1.RestartPolicyNever, 500 * time.Millisecond, time.Minute, 0, 0, ended},
		{"while it runs", corev1.RestartPolicyNever, 5 * time.Second, time.Minute, 0, 0, ended},
		{"twice while it runs", corev1.RestartPolicyNever, 3 * time.Second, time.Minute, 0, 3 * time.Second, ended},
		{"when it has ended", corev1.RestartPolicyNever, 30 * time.Second, time.Minute, 0, 0, ended},
		{"while it stops", corev1.RestartPolicyAlways, 30*time.Second + 500*time.Millisecond, 30 * time.Second,
			30 * time.Second, 0, stopped},
	} {
		for _, fifo := range bothFIFOs {
			t.Run(tc.name+"/"+fifo, func(t *testing.T) {
				inTown(t, func(c *ClientConfig) { c.FIFO = fifo }, func(t *testing.T, s *site, w *world) {
					created := &corev1.Pod{}
					if err := s.client.Post().Namespace("default").Resource("pods").Body(podNamed("a", tc.restart)).
						Do(t.Context()).Into(created); err != nil {
						t.Fatal(err)
					}
					first, err := strconv.ParseUint(created.ResourceVersion, 10, 64)
					require.NoError(t, err)
					crash := func(after time.Duration) func() {
						return func() { time.Sleep(after); s.stop(); s.startServer(t) }
					}
					remove := func() {
						options := metav1.NewDeleteOptions(int64(tc.grace / time.Second))
						if err := s.client.Delete().Namespace("default").Resource("pods").Name("a").Body(options).
							Do(t.Context()).Error(); err != nil {
							t.Fatal(err)
						}
					}
					if tc.delete < tc.crash {
						time.Sleep(tc.delete)
						remove()
						crash(tc.crash - tc.delete)()
					} else {
						crash(tc.crash)()
						if tc.crashOnceAgain > 0 {
							crash(tc.crashOnceAgain)()
						}
						time.Sleep(tc.delete - tc.crash - tc.crashOnceAgain)
						remove()
					}
					time.Sleep(2 * time.Minute)
					synctest.Wait()
					assert.Equal(t, w.get(t, "a"), nil, "in the end")
					got := w.receivedSince(t, first)
					// What node-2 has seen may be older than the new cache: it is told so, if no bookmark came in time.
					if strings.HasPrefix(strings.Join(got["kubelet-node-2"], ""), "ERROR") {
						delete(got, "kubelet-node-2")
					}
					assert.NoDiff(t, got, tc.want, "who received what")
				})
			})
		}
	}
}

// TestNoClientListsAgainWhenItsServerEnds lets the streams of a server end while it still takes connections: all
// clients come back to it at once. They are told to wait, and go on at the next server.
func TestNoClientListsAgainWhenItsServerEnds(t *testing.T) {
	inTown(t, func(*ClientConfig) {}, func(t *testing.T, s *site, w *world) {
		before := w.log.Last()
		s.end()
		time.Sleep(time.Second)
		s.stop()
		s.startServer(t)
		time.Sleep(time.Minute)
		records, _ := w.log.Since(nil, before, 1<<16)
		resumed := map[string]bool{}
		for _, r := range records {
			switch r.Point {
			case probe.ReflectorListed, probe.ReflectorSynced:
				t.Errorf("%s lists again", r.Subject)
			case probe.ReflectorWatching:
				resumed[r.Subject] = true
			}
		}
		assert.True(t, len(resumed) >= 2, "only %v have come back", resumed)
	})
}
