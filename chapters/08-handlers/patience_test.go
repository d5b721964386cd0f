package handlers

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
)

// A world that is held stands until a viewer lets it go on. A client that does not read must not keep a handler for so
// long, nor the server that waits for the handler. In these tests the world's clock moves only by Step, and the
// bubble's is the patience.
func TestADeafClientIsNotWaitedForInAHeldWorld(t *testing.T) {
	fill := func(w *watch.FakeWatcher) { // with far more than the buffers of net/http hold
		for i := range 100 {
			w.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i), Annotations: map[string]string{
				"k": strings.Repeat("x", 10<<10)}}})
		}
	}
	for name, c := range map[string]struct {
		socket bool
		end    func(w *watch.FakeWatcher, shutdown chan struct{}, world *testingclock.FakeClock)
		within time.Duration
	}{
		"the goodbye of a websocket": {true, func(_ *watch.FakeWatcher, shutdown chan struct{},
			_ *testingclock.FakeClock) {
			close(shutdown)
		}, goodbyeTime},
		"a frame, when the time of the watch is over": {false, func(w *watch.FakeWatcher, _ chan struct{},
			world *testingclock.FakeClock) {
			fill(w)
			synctest.Wait()
			world.Step(time.Hour)
		}, writeGrace},
		"a message, when the time of the watch is over": {true, func(w *watch.FakeWatcher, _ chan struct{},
			world *testingclock.FakeClock) {
			fill(w)
			synctest.Wait()
			world.Step(time.Hour)
		}, writeGrace}, // the goodbye cannot be written any more
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				world := testingclock.NewFakeClock(time.Now())
				watching, shutdown := watch.NewFakeWithChanSize(1000, false), make(chan struct{})
				client := clockedAPI(t, stuck{watching: watching}, shutdown, world).serve()
				const path = podsPath + "?watch=1&timeoutSeconds=3600"
				if c.socket {
					mustDial(t, client, path)
				} else {
					response, err := client.Get("http://api" + path)
					require.NoError(t, err)
					defer response.Body.Close()
				}
				c.end(watching, shutdown, world)
				time.Sleep(c.within - time.Millisecond)
				synctest.Wait()
				assert.False(t, watching.IsStopped(), "the client had no time to read")
				time.Sleep(time.Millisecond)
				synctest.Wait()
				if !watching.IsStopped() {
					t.Errorf("after %v the handler still waits for its client", c.within)
					world.Step(time.Minute) // so that the test ends
				}
			})
		})
	}
}

// A watch itself, its bookmarks and its end belong to the world: while that stands, they do.
func TestAWatchStandsWithTheWorld(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		world := testingclock.NewFakeClock(time.Now())
		watching := watch.NewFakeWithChanSize(1000, false)
		response, err := clockedAPI(t, stuck{watching: watching}, nil, world).serve().Get("http://api" + podsPath +
			"?watch=1&timeoutSeconds=10")
		require.NoError(t, err)
		defer response.Body.Close()
		time.Sleep(time.Hour)
		synctest.Wait()
		require.False(t, watching.IsStopped(), "the watch has ended, though no time has passed in its world")
		world.Step(10 * time.Second)
		synctest.Wait()
		assert.True(t, watching.IsStopped(), "the watch goes on after its time")
	})
}

// An answer that is stuck is cut when the request's time is over in the world, and the grace in ours.
func TestAnAnswerThatNoClientReadsIsCutInAHeldWorld(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		world, ended := testingclock.NewFakeClock(time.Now()), false
		server := New(Config{Clock: world, Patience: clock.RealClock{}})
		server.Handle(nil, http.MethodGet, "/large", "get", func(w http.ResponseWriter, _ *http.Request) {
			defer func() { ended = true }()
			for {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		})
		client := (&api{t: t, handler: server}).serveUntil(context.Background())
		response, err := client.Get("http://api/large")
		require.NoError(t, err)
		defer response.Body.Close()
		synctest.Wait()
		world.Step(RequestTimeout)
		time.Sleep(writeGrace)
		synctest.Wait()
		if !ended {
			t.Error("the handler still writes")
			world.Step(time.Hour)
		}
	})
}
