package storm

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	nWriters    = 8
	nObjects    = 24 // slots for objects; a slot has one object at most
	writerPause = 8 * time.Millisecond
	longestLife = 40 // writes, or slightly more

	// callWithin is the time limit of one request of a writer or a reader. It exceeds the time for which a fault stops
	// the program, so that most waiting requests get a response.
	callWithin = 5 * time.Second
)

// configMaps returns a client for a namespace. Requests time out after within, or never if within is 0.
func configMaps(base, namespace string, within time.Duration) typed.ConfigMapInterface {
	config := &rest.Config{Host: base, QPS: -1, Timeout: within}
	return kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps(namespace)
}

// counted returns a ConfigMap with the counter n, as an annotation, for a write at version rv ("": any).
func counted(name string, n int, rv string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: rv,
		Annotations: map[string]string{"n": strconv.Itoa(n)}}}
}

// objectOf returns the name, counter and version of a ConfigMap or its metadata. A missing counter is 0.
func objectOf(m metav1.Object) object {
	n, _ := strconv.Atoi(m.GetAnnotations()["n"])
	return object{m.GetName(), n, parse(m.GetResourceVersion())}
}

// parse reads a version as a number, for the judge, which checks the server from outside. A real client must not.
func parse(version string) uint64 {
	rv, _ := strconv.ParseUint(version, 10, 64) // the judge rejects 0
	return rv
}

// pause waits for d. It returns false if ctx is done.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// writer reads objects and increments their counters. All writers share all objects, but each creates and deletes
// objects only in its own slots.
type writer struct {
	id     int
	api    typed.ConfigMapInterface
	random *rand.Rand
	ledger *ledger
}

// run writes until ctx is done, and waits for the last request's response or timeout.
func (w *writer) run(ctx context.Context) {
	for pause(ctx, time.Duration(w.random.Int64N(int64(2*writerPause)))) {
		if !w.turn(context.Background(), w.random.IntN(nObjects)) {
			w.ledger.refused()
		}
	}
}

// turn reads a slot's object and changes or deletes it, or fills a free slot of w. It returns false if a request fails.
func (w *writer) turn(ctx context.Context, slot int) bool {
	a, known := w.ledger.at(slot)
	own := slot%nWriters == w.id
	if a == nil {
		return !own || w.create(ctx, slot)
	}
	now, err := w.find(ctx, known.name)
	if err != nil {
		return false
	}
	found := objectOf(now)
	if w.ledger.read(a, known, found) {
		if own {
			w.ledger.put(slot, nil)
		}
		return true
	}
	if own && w.random.IntN(longestLife) < found.n-3 { // deletes only the version that was read
		w.ledger.doom(a)
		exactly := &metav1.Preconditions{UID: &now.UID, ResourceVersion: &now.ResourceVersion}
		return w.api.Delete(ctx, known.name, metav1.DeleteOptions{Preconditions: exactly}) == nil
	}
	next, err := w.api.Update(ctx, counted(known.name, found.n+1, now.ResourceVersion), metav1.UpdateOptions{})
	if err == nil {
		w.ledger.wrote(a, found, objectOf(next))
	}
	return err == nil
}

// create fills a slot. If the request fails, the object may exist, but no writer touches it.
func (w *writer) create(ctx context.Context, slot int) bool {
	now, err := w.api.Create(ctx, counted(w.ledger.freshName(), 1, ""), metav1.CreateOptions{})
	if err != nil {
		return false
	}
	a := &account{raised: map[int]bool{}}
	w.ledger.wrote(a, object{}, objectOf(now))
	w.ledger.put(slot, a)
	return true
}

// find reads an object, by a list or by a get. If there is no such object, it returns a ConfigMap without a version.
func (w *writer) find(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	if w.random.IntN(2) == 0 {
		now, err := w.api.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return &corev1.ConfigMap{}, nil
		}
		return now, err
	}
	list, err := w.api.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil || len(list.Items) == 0 {
		return &corev1.ConfigMap{}, err
	}
	return &list.Items[0], nil
}

// watcher is a raw watch that resumes. It lists and watches from the list's version. When the stream breaks, it resumes
// from the newest version that it has seen. It lists again only if that version is too old.
type watcher struct {
	// Set before run, never changed.
	*view
	lister typed.ConfigMapInterface
	// stream has no time limit. The server, a fault, the watcher or the end of the storm ends a watch.
	stream typed.ConfigMapInterface
	slow   time.Duration // delay for each event
	cuts   bool          // whether the watcher may leave in the middle of a stream
	random *rand.Rand

	nWatches, nExpired, nLists int // owned by run; read when it has returned
}

func (w *watcher) String() string {
	return fmt.Sprintf("%s: %d events, %d streams, %d lists, %d times 410", w.who, len(w.seen), w.nWatches, w.nLists,
		w.nExpired)
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
		pause(ctx, time.Duration(10+w.random.IntN(90))*time.Millisecond) // after a stream's end, or after a refusal
	}
}

// list lists the objects and puts the list into the view. It returns false if the list failed.
func (w *watcher) list(ctx context.Context) bool {
	list, err := w.lister.List(ctx, metav1.ListOptions{})
	if err != nil {
		return false
	}
	w.nLists++
	var items []object
	for i := range list.Items {
		items = append(items, objectOf(&list.Items[i]))
	}
	w.reset(parse(list.ResourceVersion), items)
	return true
}

// watch reads one stream until the stream ends or the watcher leaves, and reports whether the next watch can resume.
func (w *watcher) watch(ctx context.Context) bool {
	w.nWatches++
	ends := int64(2 + w.random.IntN(20))
	events, err := w.stream.Watch(ctx, metav1.ListOptions{AllowWatchBookmarks: true, TimeoutSeconds: &ends,
		ResourceVersion: strconv.FormatUint(w.newest(), 10)})
	if err != nil {
		return !w.expired(err)
	}
	defer events.Stop()
	left := -1 // events until the watcher leaves
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
			w.event(string(event.Type), objectOf(event.Object.(*corev1.ConfigMap)))
		}
		if w.slow > 0 && !pause(ctx, w.slow) {
			return true
		}
	}
	return true
}

// expired reports whether err means that the version is too old, and counts such errors.
func (w *watcher) expired(err error) bool {
	expired := apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
	if expired {
		w.nExpired++
	}
	return expired
}

// sleeper repeatedly opens a watch and reads nothing from it: the program must close the watch or cope with it.
type sleeper struct {
	address   string
	webSocket bool
	random    *rand.Rand

	nWatches int // owned by run; read when it has returned
}

func (s *sleeper) String() string { return fmt.Sprintf("sleeper: %d watches", s.nWatches) }

// run opens one watch after the other, each for 1 to 10 seconds, until ctx is done.
func (s *sleeper) run(ctx context.Context) {
	for pause(ctx, 100*time.Millisecond) {
		s.sleep(ctx, time.Duration(1+s.random.IntN(10))*time.Second)
	}
}

func (s *sleeper) sleep(ctx context.Context, d time.Duration) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.address)
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10) // small, so that the unread data soon block the server
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

// informer is an informer of the real client-go. At the end of the storm it must hold the stored objects. The judge
// does not check its events, because raw watches receive the same events.
type informer struct {
	cache.SharedIndexInformer
	make string
}

// makes lists the kinds of informers, which request protobuf, untyped JSON and only metadata, in this order.
var makes = []string{"typed", "dynamic", "metadata"}

func newInformer(base, of string) informer {
	config, gvr := &rest.Config{Host: base, QPS: -1}, corev1.SchemeGroupVersion.WithResource("configmaps")
	made, none := informer{make: of}, time.Duration(0)
	switch of {
	case "dynamic":
		client := dynamic.NewForConfigOrDie(config)
		factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, none, namespace, nil)
		made.SharedIndexInformer = factory.ForResource(gvr).Informer()
	case "metadata":
		client := metadata.NewForConfigOrDie(config)
		factory := metadatainformer.NewFilteredSharedInformerFactory(client, none, namespace, nil)
		made.SharedIndexInformer = factory.ForResource(gvr).Informer()
	default:
		config.ContentType = runtime.ContentTypeProtobuf
		factory := informers.NewSharedInformerFactoryWithOptions(kubernetes.NewForConfigOrDie(config), none,
			informers.WithNamespace(namespace))
		made.SharedIndexInformer = factory.Core().V1().ConfigMaps().Informer()
	}
	return made
}

func (i informer) run(ctx context.Context) { i.RunWithContext(ctx) }
func (i informer) String() string {
	return fmt.Sprintf("%s informer: %d objects", i.make, len(i.holds()))
}

func (i informer) holds() map[string]int {
	counters := map[string]int{}
	for _, obj := range i.GetStore().List() {
		o := objectOf(obj.(metav1.Object))
		counters[o.name] = o.n
	}
	return counters
}
