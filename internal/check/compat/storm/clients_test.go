package storm

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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

	"listwatch/internal/check/eventually"
)

const (
	nWriters    = 8
	nObjects    = 24 // at a time
	writerPause = 8 * time.Millisecond
	longestLife = 40 // writes, or a few more

	// The time limit of one request of a writer or a reader. Longer than the program stands still by order, so that
	// most requests that wait are answered.
	callWithin = 5 * time.Second
)

// configMaps returns a client for a namespace. No answer takes longer than within; 0 is no limit.
func configMaps(base, namespace string, within time.Duration) typed.ConfigMapInterface {
	config := &rest.Config{Host: base, QPS: -1, Timeout: within}
	return kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps(namespace)
}

// counted returns a ConfigMap with counter n.
func counted(name string, n int, rv string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: rv,
		Annotations: map[string]string{"n": strconv.Itoa(n)}}}
}

// objectOf reads the counter of a ConfigMap, or of its metadata alone. 0 is never right, and found.
func objectOf(m metav1.Object) object {
	n, _ := strconv.Atoi(m.GetAnnotations()["n"])
	return object{m.GetName(), n, parse(m.GetResourceVersion())}
}

// parse reads a version. Here, and not in clients, versions are numbers: we look at the server from outside.
func parse(version string) uint64 {
	rv, _ := strconv.ParseUint(version, 10, 64) // 0 is never right, and found
	return rv
}

// pause waits. It reports whether to go on: ctx is not done.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// writer reads objects and raises their counters. All writers share all objects; each creates and deletes those in
// slots of its own.
type writer struct {
	id     int
	api    typed.ConfigMapInterface
	random *rand.Rand
	ledger *ledger
}

// run writes until ctx is done. What is under way then is answered, or times out.
func (w *writer) run(ctx context.Context) {
	for pause(ctx, time.Duration(w.random.Int64N(int64(2*writerPause)))) {
		if !w.turn(context.Background(), w.random.IntN(nObjects)) {
			w.ledger.refused()
		}
	}
}

// turn reads the object in a slot and writes on top of what it has read. It reports whether the server has done what it
// was asked for.
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
	if own && w.random.IntN(longestLife) < found.n-3 { // exactly the version that was read
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

// create fills a slot. An object whose creation is not answered may come to be; no writer will touch it.
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

// find reads an object, by a list or by a get. An object without a version is one that is not there.
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

// watcher is a raw watch that resumes: it lists, watches from the version of the list, watches on from the newest
// version it knows when the stream breaks, and lists again only when it is told that this version is too old.
type watcher struct {
	// Set before run, never changed.
	*view
	lister typed.ConfigMapInterface
	// without a time limit: the server ends a watch, or a fault does, or the end of the storm
	stream typed.ConfigMapInterface
	slow   time.Duration // for each event
	cuts   bool          // it leaves in the middle of a stream now and then
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
		pause(ctx, time.Duration(10+w.random.IntN(90))*time.Millisecond) // after the end of a stream, or a refusal
	}
}

// list reports whether there is a version to watch from.
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

// watch reads one stream to its end. It reports whether the version that is known may be watched from.
func (w *watcher) watch(ctx context.Context) bool {
	w.nWatches++
	ends := int64(2 + w.random.IntN(20))
	events, err := w.stream.Watch(ctx, metav1.ListOptions{AllowWatchBookmarks: true, TimeoutSeconds: &ends,
		ResourceVersion: strconv.FormatUint(w.newest(), 10)})
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
			w.event(string(event.Type), objectOf(event.Object.(*corev1.ConfigMap)))
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
	address   string
	webSocket bool
	random    *rand.Rand

	nWatches int // owned by run; read when it has returned
}

func (s *sleeper) String() string { return fmt.Sprintf("sleeper: %d watches", s.nWatches) }

// run sleeps until ctx is done.
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

// leaver asks for a state as a stream and reads nothing of it. When the bookmark that ends the state is in its
// watcher's input, it writes until the dispatcher waits for the watcher, and leaves then. It has a resource to itself:
// with other slow watchers there would be no time left to wait for it.
type leaver struct {
	address string
	api     typed.SecretInterface
	random  *rand.Rand

	nSecrets, nWatches, nWaitedFor int // owned by run; read when it has returned
}

func (l *leaver) String() string {
	return fmt.Sprintf("leaver: %d watches, %d left while the dispatcher waited", l.nWatches, l.nWaitedFor)
}

// run comes and leaves until ctx is done.
func (l *leaver) run(ctx context.Context) {
	for pause(ctx, 100*time.Millisecond) {
		if l.fill(ctx) {
			l.comeAndLeave(ctx)
		}
	}
}

// fill creates 6 MB of secrets: Linux keeps up to 4 MB for a connection that is not read, and the watcher's channel
// holds ten events. It reports whether all are there.
func (l *leaver) fill(ctx context.Context) bool {
	for ; l.nSecrets < 60; l.nSecrets++ {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("big-", l.nSecrets)},
			Data: map[string][]byte{"a": make([]byte, 75_000)}}
		if _, err := l.api.Create(ctx, secret, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return false
		}
	}
	return true
}

func (l *leaver) comeAndLeave(ctx context.Context) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.address)
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10) // what it does not read shall be felt
	_, err = fmt.Fprintf(conn, "GET /api/v1/namespaces/%s/secrets?watch=1&sendInitialEvents=true&resourceVersionMatch="+
		"NotOlderThan&allowWatchBookmarks=true HTTP/1.1\r\nHost: %s\r\n\r\n", namespace, l.address)
	bookmarked := func() bool { return ctx.Err() != nil || l.looks(ctx).Bookmark == "received" }
	if err != nil || !eventually.Did(callWithin, bookmarked) { // not if the program was restarted meanwhile
		return
	}
	l.nWatches++
	for range 3 * 10 { // an input holds ten; more only if the world is held
		if !l.change(ctx) {
			return
		}
		if w := l.looks(ctx); w.waitedFor() {
			l.nWaitedFor++
			return
		}
	}
}

// held is what the program tells of the leaver's watcher; the zero value is none.
type held struct {
	Bookmark           string
	InputLen, InputCap int
	dispatching        bool
}

// waitedFor reports whether the dispatcher waits for the watcher.
func (w held) waitedFor() bool { return w.dispatching && w.InputLen > 0 && w.InputLen == w.InputCap }

// looks asks the program for the leaver's watcher.
func (l *leaver) looks(ctx context.Context) (w held) {
	var state struct {
		Server struct {
			Cachers []struct {
				Resource    string
				Dispatching bool
				Watchers    []held
			}
		}
	}
	request, err := http.NewRequestWithContext(ctx, "GET", "http://"+l.address+"/viz/state", nil)
	if err != nil {
		return held{}
	}
	request.Close = true
	answer, err := (&http.Client{Timeout: callWithin}).Do(request)
	if err != nil {
		return held{}
	}
	defer answer.Body.Close()
	_ = json.NewDecoder(answer.Body).Decode(&state) // a broken answer has no watcher
	for _, c := range state.Server.Cachers {
		if c.Resource == "secrets" && len(c.Watchers) > 0 {
			w = c.Watchers[len(c.Watchers)-1]
			w.dispatching = c.Dispatching
		}
	}
	return w
}

// change writes once. It reports whether the program answered.
func (l *leaver) change(ctx context.Context) bool {
	change := fmt.Sprintf(`{"stringData":{"n":"%d"}}`, l.random.Uint64())
	_, err := l.api.Patch(ctx, "big-0", types.MergePatchType, []byte(change), metav1.PatchOptions{})
	return err == nil
}

// informer is one of the real client-go. It has to end with what is stored. What it is told on the way is what raw
// watches are told, and they are judged.
type informer struct {
	cache.SharedIndexInformer
	make string
}

// makes are all of them: they ask for protobuf, for JSON of any kind, and for metadata alone.
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
