package reflector

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

// running starts the reflector, waits until it is at rest, and returns a function that stops it and waits for its end.
func running(t *testing.T, r *Reflector) (stop func()) {
	t.Helper()
	stop = bubble.Go(t, "reflector.Run", r.Run)
	synctest.Wait()
	return stop
}

func wantLog(t *testing.T, what, got, want string) {
	t.Helper()
	assert.NoDiff(t, want, got, what)
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func sentences(log *probe.Log) string {
	var lines []string
	for _, r := range probetest.Records(log) {
		lines = append(lines, r.Sentence())
	}
	return strings.Join(lines, "\n")
}

func TestProbesTellTheStoryOfTwoRounds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		log := probe.NewLog(clock.RealClock{}, 0)
		s := newServer()
		s.onList(listing(podList("5", pod("a", "3"))))
		s.onWatch(
			refusing(notSupported),
			played(time.Hour, event(watch.Modified, pod("a", "6")), bookmark("8"), errorEvent(expired)),
			played(time.Hour, event(watch.Added, pod("a", "6")), endOfInitialEvents("9"), event(watch.Deleted,
				pod("a", "10"))),
		)
		r := newTestReflector(s, &record{}, func(c *Config) {
			c.UseWatchList = true
			c.Probe = probe.New(log).Resource("pods").Subject("cacher")
			c.KeyOf = func(obj any) (string, error) { return "/registry/pods/default/" + obj.(*corev1.Pod).Name, nil }
		})
		stop := running(t, r)
		time.Sleep(time.Second)
		stop()
		wantLog(t, "told", sentences(log), strings.TrimSpace(`
cacher has listed 1 object at 5.
cacher watches changes after 5.
cacher receives MODIFIED default/a at 6.
cacher receives BOOKMARK at 8.
cacher receives ERROR.
The watch of cacher ended: too old resource version: 5 (9).
cacher waits 800 ms before trying again: too old resource version: 5 (9).
cacher watches a state not older than 8 and its changes.
cacher receives ADDED default/a at 6.
cacher receives BOOKMARK at 9.
cacher has received the whole state at 9: 1 object.
cacher receives DELETED default/a at 10.
The watch of cacher ended: stop requested.`))
		assert.Equal(t, "/registry/pods/default/a", probetest.Records(log)[2].Key, "key")
	})
}

// Whatever the store refuses is counted and reported, and does not keep the reflector from what comes after it.
func TestWhatTheStoreRefusesIsTold(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		log := probe.NewLog(clock.RealClock{}, 0)
		s, store := newServer(), &record{refuses: errors.New("no attributes")}
		s.onList(listing(podList("5")))
		s.onWatch(played(time.Hour, event(watch.Added, pod("x", "6")), event(watch.Modified, pod("x", "7")),
			event(watch.Deleted, pod("x", "8")), event(watch.Added, pod("a", "9"))))
		r := newTestReflector(s, store, func(c *Config) { c.Probe = probe.New(log).Resource("pods").Subject("cacher") })
		stop := running(t, r)
		time.Sleep(time.Second)
		stop()
		told := ""
		for _, each := range probetest.Records(log, probe.ReflectorStoreFailed) {
			told += each.Sentence() + "\n"
			assert.True(t, each.Anomaly(), "no anomaly")
		}
		wantLog(t, "told", told, `The store of cacher refuses default/x at 6, and misses it from now on: no attributes.
The store of cacher refuses default/x at 7, and misses it from now on: no attributes.
The store of cacher refuses default/x at 8, and misses it from now on: no attributes.
`)
		assert.Equal(t, 3, r.Snapshot().StoreErrors)
		assert.Equal(t, "9", r.LastSyncResourceVersion())
	})
}

func TestAKeyIsTheNameBehindTheNamespaceIfThereIsOne(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	for want, obj := range map[string]any{"default/a": pod("a", "1"), "n": node} {
		assert.Equal(t, want, require.Value(MetaNamespaceKeyFunc(obj))(t))
	}
}
