package storm

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
)

// watcher is a raw watch that resumes: it lists, watches from the version of the list, watches on from the newest
// version it knows when the stream breaks, and lists again only when it is told that this version is too old.
type watcher struct {
	// Set before run, never changed.
	*view
	lister typed.ConfigMapInterface
	// without a time limit: the server ends a watch, or a fault does, or the end of the storm
	stream   typed.ConfigMapInterface
	selector string        // of labels
	slow     time.Duration // for each event
	cuts     bool          // it leaves in the middle of a stream now and then
	random   *rand.Rand

	// Owned by run; read when it has returned.
	nWatches, nExpired, nLists int
}

func (w *watcher) name() string { return w.who }

func (w *watcher) String() string {
	return fmt.Sprintf("%d events, %d streams, %d lists, %d times 410", w.nEvents, w.nWatches, w.nLists, w.nExpired)
}

// run watches until ctx is done.
func (w *watcher) run(ctx context.Context) {
	listed := false
	for ctx.Err() == nil {
		if !listed {
			listed = w.list(ctx)
		}
		if listed {
			listed = w.watch(ctx)
		}
		pause(ctx, time.Duration(10+w.random.IntN(90))*time.Millisecond) // after the end of a stream, or a refusal
	}
}

// list reports whether there is a version to watch from.
func (w *watcher) list(ctx context.Context) bool {
	list, err := w.lister.List(ctx, metav1.ListOptions{LabelSelector: w.selector})
	if err != nil {
		return false
	}
	w.nLists++
	w.reset(parse(list.ResourceVersion), objects(list))
	return true
}

// watch reads one stream to its end. It reports whether the version that is known may be watched from.
func (w *watcher) watch(ctx context.Context) bool {
	w.nWatches++
	ends := int64(2 + w.random.IntN(20))
	events, err := w.stream.Watch(ctx, metav1.ListOptions{
		AllowWatchBookmarks: true, ResourceVersion: version(w.newest()), LabelSelector: w.selector,
		TimeoutSeconds: &ends,
	})
	if err != nil {
		return !w.expired(err)
	}
	defer events.Stop()
	left := -1 // events until it leaves
	if w.cuts {
		left = w.random.IntN(300)
	}
	for ; left != 0; left-- {
		event, open := <-events.ResultChan()
		if !open {
			return true
		}
		switch event.Type {
		case watch.Error:
			return !w.expired(apierrors.FromObject(event.Object))
		case watch.Bookmark:
			w.bookmark(parse(event.Object.(*corev1.ConfigMap).ResourceVersion))
		default:
			w.event(string(event.Type), objectOf(event.Object))
		}
		if w.slow > 0 && !pause(ctx, w.slow) {
			return true
		}
	}
	return true
}

// expired reports whether the version is too old, and counts it.
func (w *watcher) expired(err error) bool {
	expired := apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
	if expired {
		w.nExpired++
	}
	return expired
}

// sleeper opens a watch and reads nothing of it, again and again: the program has to end it, or to bear it.
type sleeper struct {
	faults    // none: it is told nothing
	address   string
	webSocket bool
	random    *rand.Rand

	nWatches int // owned by run; read when it has returned
}

func (s *sleeper) name() string { return "sleeper" }
func (s *sleeper) String() string {
	return fmt.Sprintf("%d watches of which nothing was read", s.nWatches)
}

// run sleeps until ctx is done.
func (s *sleeper) run(ctx context.Context) {
	for ctx.Err() == nil {
		s.sleep(ctx, time.Duration(1+s.random.IntN(10))*time.Second)
		pause(ctx, 100*time.Millisecond)
	}
}

func (s *sleeper) sleep(ctx context.Context, d time.Duration) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.address)
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10) // what it does not read shall be felt
	upgrade := ""
	if s.webSocket {
		upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " +
			"c3Rvcm0gc3Rvcm0gc3Rvcm0=\r\n"
	}
	w := bufio.NewWriter(conn)
	fmt.Fprintf(w, "GET /api/v1/namespaces/%s/configmaps?watch=1 HTTP/1.1\r\nHost: %s\r\n%s\r\n", namespace, s.address,
		upgrade)
	if w.Flush() == nil {
		s.nWatches++
		pause(ctx, d)
	}
}
