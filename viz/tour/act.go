package tour

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	listwatch "listwatch/chapters/09-listwatch"
	"listwatch/internal/kube/negotiation"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
	"listwatch/internal/play/sandbox"
	"listwatch/viz/reply"
)

const (
	most     = 60                    // changes of the pod while its client does not read, at most
	largest  = 400                   // places of a ring that is made to lose a version
	spare    = 3                     // places of the ring that are left
	tick     = 30 * time.Millisecond // between two looks at the log
	patience = 8 * time.Second       // for the effect of a request
	label    = "listwatch-tour"      // of its pod: no other one has it
)

// Machine is what the tour acts on. Without a Sandbox a tour is only told, from its recording.
type Machine struct {
	Sandbox interface {
		Turn(ctx context.Context, story *sandbox.Telling, knob sandbox.Knob) (sandbox.Receipt, error)
		AddWatcher(ctx context.Context, story *sandbox.Telling, options sandbox.WatcherOptions) (sandbox.WatcherInfo,
			sandbox.Receipt, error)
		RemoveWatcher(ctx context.Context, id string) error
		Watchers() []sandbox.WatcherInfo
		Tour() (end func() (last bool))
	}
	Client *listwatch.RESTClient // of the server half
	Log    *probe.Log
	// Keyframe returns a picture at or before a record.
	Keyframe func(ctx context.Context, seq uint64) (fold.Keyframe, error)
}

// Mount adds the room's routes.
func (m *Machine) Mount(router chi.Router) {
	router.Handle("GET /viz/scenario/tour", reply.With(func(*http.Request) (any, error) { return Recorded() }))
	if m.Sandbox != nil {
		router.Handle("POST /viz/tour", reply.Body(func(r *http.Request, t *Tour) (any, error) {
			return t, m.Act(r.Context(), t)
		}))
	}
}

// Attend is called when a page begins to watch the log. As long as one with `tour` is open, it gives a tour.
func (m *Machine) Attend(r *http.Request) (leave func()) {
	if m.Sandbox == nil || !r.URL.Query().Has("tour") {
		return func() {}
	}
	end := m.Sandbox.Tour()
	return func() {
		if last := end(); last {
			m.Leave(r.Context())
		}
	}
}

// turn is the step at which the visitor acts.
var turn = slices.IndexFunc(Steps, func(s Step) bool { return s.Act })

// acts are what can be done, and how many steps have their places in the log then.
var acts = map[string]struct {
	do    func(a *actor, ctx context.Context)
	steps int
}{
	"begin": {(*actor).begin, turn},
	"stop":  {(*actor).stop, turn + 1},
	"back":  {(*actor).back, len(Steps)},
	"end":   {(*actor).end, 0},
}

// Act does the next part of a tour, and waits until the log says what its steps tell of. For what the program does not
// show within [patience], as in a held world, the error is 504. Others are the server's and the sandbox's.
func (m *Machine) Act(ctx context.Context, t *Tour) error {
	act, ok := acts[t.Do]
	a := &actor{Machine: m, Tour: t, past: past{key: t.Key}, readTo: t.From}
	if !ok || t.Do != "begin" && a.name() == "" {
		return apierrors.NewBadRequest("do, key: want begin; or stop, back or end, and the tour's pod")
	}
	if last := m.Log.Last(); t.From > last {
		return apierrors.NewBadRequest(fmt.Sprintf("from: there is no record %d yet, the newest is %d", t.From, last))
	}
	t.Do = ""
	if act.do(a, ctx); a.err == nil && act.steps > 0 {
		a.tell(ctx, act.steps)
	}
	return a.err
}

// actor does one act: a list of what it does, one thing after the other. Once one has failed, those after it do
// nothing.
type actor struct {
	*Machine
	*Tour
	past          // of the tour, as far as it was read
	readTo uint64 // the newest record that was read
	err    error  // of what has failed
}

// tell waits until the first n steps are in the log, and finds them.
func (a *actor) tell(ctx context.Context, n int) {
	picture, err := a.Keyframe(ctx, a.From)
	start, wrong := fold.Read(picture.State)
	if a.err = cmp.Or(err, wrong); a.err != nil {
		return
	}
	for r := range a.Log.Between(picture.Seq, a.From) {
		start.Apply([]probe.Record{*r})
	}
	a.await(ctx, func() (last probe.Record) {
		for _, last = range newPlot(a.Tour, start, a.records).rests()[:n] {
			if last.Seq == 0 {
				break
			}
		}
		return last
	})
	a.find(start, a.records, n)
}

// begin opens the client and creates the pod under the first name that is free.
func (a *actor) begin(ctx context.Context) {
	a.open(ctx)
	for n := 1; ; n++ {
		a.Key = metav1.NamespaceDefault + "/my-pod"
		if n > 1 {
			a.Key += fmt.Sprint("-", n)
		}
		if a.create(ctx); !apierrors.IsAlreadyExists(a.err) {
			return
		}
		a.err = nil
	}
}

// stop stops the client from reading, and changes the pod until the client can take no more: the next change would
// close it. A small ring must not lose what the client has to come back for.
func (a *actor) stop(ctx context.Context) {
	if !a.isOpen() { // the tour was left, and took its client and perhaps its pod along
		if a.create(ctx); apierrors.IsAlreadyExists(a.err) {
			a.err = nil
		}
		a.open(ctx)
	}
	opened := a.stream()
	a.turn(ctx, "line.stall", "true")
	of := func(point probe.Point) probe.Query {
		return probe.Query{Points: on(point), Subject: opened.Subject, From: opened.Seq}
	}
	for n := 1; a.err == nil && n <= min(most, a.ring()-spare); n++ {
		a.Read = a.change(ctx, n, 2000)
		if a.read(); len(a.all(of(probe.ResultBlocked))) == 0 {
			continue
		}
		sent := probe.Query{Points: on(probe.InputSent), Subject: opened.Subject, RV: a.Read}
		last := a.await(ctx, func() probe.Record { return a.first(sent) })
		// What looks full may be so for a moment only, until the connection takes no more.
		if len(a.all(of(probe.InputSent)))-len(a.all(of(probe.InputReceived))) >= last.Args[1] {
			break
		}
	}
	a.handled(ctx, a.Read)
}

// back lets the client come back, and read what it missed; then keeps it away until the ring has lost what it read
// last, unless the ring is large, and lets it come back again. At the end the pod is created once more. A client that
// is gone is opened and stopped again before: all pages that give a tour were away for a moment.
func (a *actor) back(ctx context.Context) {
	if !a.isOpen() {
		a.stop(ctx)
	}
	before := a.stream()
	a.turn(ctx, "line.drop", "")
	a.turn(ctx, "line.stall", "false")
	// The pod may have been changed by others, too, and, if this is tried again, the client may know the version.
	a.await(ctx, func() probe.Record {
		if now := a.stream(); now.Subject != before.Subject && max(resumedAt(now), a.sent().RV) >= a.Read {
			return now
		}
		return probe.Record{}
	})
	a.overrun(ctx)
	a.remove(ctx)
	// The controllers are done with the pod that is gone: what they still work on comes into no workqueue.
	a.await(ctx, func() probe.Record {
		gone := a.first(probe.Query{Points: on(probe.HandlerCalled), Type: "DELETED", Key: a.Key})
		added := probe.Query{Points: on(probe.WorkAdded), Key: a.Key}
		done := probe.Query{Points: on(probe.WorkDone), Key: a.Key}
		if a.newest(done).Seq < a.newest(added).Seq {
			return probe.Record{}
		}
		return gone
	})
	a.handled(ctx, a.create(ctx))
}

// overrun keeps the client away until the ring has lost what it knows, and waits until it has begun again, or, where
// the ring has grown, has read on.
func (a *actor) overrun(ctx context.Context) {
	if a.ring() > largest {
		return
	}
	a.turn(ctx, "line.cut", "true")
	newest, before := uint64(0), a.stream()
	for n := 0; a.err == nil && n <= min(a.ring(), largest); n++ {
		newest = a.change(ctx, n, 0)
		a.read()
	}
	a.turn(ctx, "line.cut", "false")
	a.await(ctx, func() probe.Record {
		now := a.stream()
		switch lost := a.first(probe.Query{Points: on(probe.FrameWritten), Type: "ERROR", From: before.Seq}); {
		case now.Subject == before.Subject:
		case lost.Seq > 0:
			return a.newest(probe.Query{Points: on(probe.FrameWritten), Type: "BOOKMARK", Subject: now.Subject})
		case a.sent().RV >= newest:
			return a.sent()
		}
		return probe.Record{}
	})
}

// ring returns how many places the ring has.
func (a *actor) ring() int { return a.newest(probe.Query{Points: on(probe.RingAppend)}).Args[2] }

// end removes the client and the pod, as far as they are still there.
func (a *actor) end(ctx context.Context) {
	if a.isOpen() {
		_ = a.Sandbox.RemoveWatcher(ctx, a.ID) // it may have gone meanwhile
	}
	if a.remove(ctx); apierrors.IsNotFound(a.err) {
		a.err = nil
	}
}

// Leave deletes the pods of tours that were not ended: the last page that gave one has gone, and ctx with it. It waits
// for at most [patience]. A tour that is resumed creates its pod again. One that begins meanwhile opens its client
// first, and creates its pod after that.
func (m *Machine) Leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	pods := m.Client.Delete().Namespace(metav1.NamespaceDefault).Resource("pods").Param("labelSelector", label)
	_ = pods.Param("gracePeriodSeconds", "0").Do(ctx).Error() // in a held world they stay
}

// ---- the client

// open opens the client, and returns when the log says so. It watches from now on, and so knows a version from its
// beginning.
func (a *actor) open(ctx context.Context) {
	var now corev1.PodList
	if a.pods(ctx, a.Client.Get().Param("limit", "1"), &now); a.err != nil {
		return
	}
	added, _, err := a.Sandbox.AddWatcher(ctx, nil, sandbox.WatcherOptions{
		Resource: "pods", Tour: true, ResourceVersion: now.ResourceVersion, Bookmarks: true, WatchList: true,
	})
	a.ID, a.Agent, a.err = added.ID, added.UserAgent, err
	a.await(ctx, a.stream)
}

func (a *actor) isOpen() bool {
	a.read()
	return slices.ContainsFunc(a.Sandbox.Watchers(), func(w sandbox.WatcherInfo) bool { return w.ID == a.ID })
}

func (a *actor) turn(ctx context.Context, name, value string) {
	if a.err == nil {
		_, a.err = a.Sandbox.Turn(ctx, nil, sandbox.Knob{Name: name, Target: a.Agent, Value: value})
	}
}

// stream is how the client's newest stream was opened.
func (a *actor) stream() probe.Record {
	opened := openedBy(a.Agent)
	opened.Subject = "*"
	return a.newest(opened)
}

// sent is the newest that was written to that stream.
func (a *actor) sent() probe.Record {
	return a.newest(probe.Query{Points: on(probe.FrameWritten), Subject: a.stream().Subject})
}

// ---- the pod

func (a *actor) name() string { return a.Key[strings.LastIndex(a.Key, "/")+1:] }

// pods sends a request about the pods, and reads the answer into an object.
func (a *actor) pods(ctx context.Context, request *listwatch.Request, into runtime.Object) {
	if a.err == nil {
		a.err = request.Namespace(metav1.NamespaceDefault).Resource("pods").Do(ctx).Into(into)
	}
}

// create creates the pod, and returns its version.
func (a *actor) create(ctx context.Context) (rv uint64) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: a.name(), Labels: map[string]string{"app": "my-app", label: "open"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/main:1"}}},
	}
	a.pods(ctx, a.Client.Post().Body(pod), pod)
	return versionOf(pod.ResourceVersion)
}

// change changes the pod for the n-th time, by a text of a size, and returns its version then.
func (a *actor) change(ctx context.Context, n, size int) (rv uint64) {
	var pod corev1.Pod
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"tour":"%d %s"}}}`, n, strings.Repeat("·", size))
	a.pods(ctx, a.Client.Patch(types.MergePatchType).Name(a.name()).Body(patch), &pod)
	return versionOf(pod.ResourceVersion)
}

func (a *actor) remove(ctx context.Context) {
	a.pods(ctx, a.Client.Delete().Name(a.name()).Param("gracePeriodSeconds", "0"), &corev1.Pod{})
}

// handled waits until the informer has stored a version, and a handler was called with it.
func (a *actor) handled(ctx context.Context, rv uint64) {
	a.await(ctx, func() probe.Record {
		if a.first(probe.Query{Points: on(probe.IndexerUpdated), RV: rv, Subject: a.Informer}).Seq == 0 {
			return probe.Record{}
		}
		return a.first(probe.Query{Points: on(probe.HandlerCalled), RV: rv})
	})
}

// ---- the log

// read takes in what the log says since.
func (a *actor) read() {
	records, ok := a.Log.Since(nil, a.readTo, 1<<16)
	if ok && len(records) > 0 {
		a.readTo = records[len(records)-1].Seq
		a.records = append(a.records, records...)
	}
}

// await reads until what is found has a number, and returns it.
func (a *actor) await(ctx context.Context, find func() probe.Record) probe.Record {
	for began := time.Now(); a.err == nil; a.err = routine.Sleep(ctx, clock.RealClock{}, tick) {
		a.read()
		if r := find(); r.Seq > 0 {
			return r
		}
		if time.Since(began) >= patience {
			const standing = "The program does not continue. Is it held, or stopped by a debugger?"
			a.err = negotiation.Refusal(http.StatusGatewayTimeout, standing)
			break
		}
	}
	return probe.Record{}
}
