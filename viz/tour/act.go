package tour

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"listwatch/internal/kube/negotiation"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
	"listwatch/internal/play/sandbox"
)

const (
	most     = 60  // changes of the pod while its client does not read, at most
	largest  = 400 // places of a ring that is made to lose a version
	spare    = 3   // places of the ring that are left
	tick     = 10 * time.Millisecond
	patience = 8 * time.Second // for the effect of a request
)

// Machine is what the tour acts on.
type Machine struct {
	Sandbox interface {
		Turn(ctx context.Context, knob sandbox.Knob) (sandbox.Receipt, error)
		AddWatcher(ctx context.Context, options sandbox.WatcherOptions) (id string, receipt sandbox.Receipt, err error)
		RemoveWatcher(ctx context.Context, id string) error
		Watchers() []sandbox.WatcherInfo
	}
	API   http.Handler // it answers as a kube-apiserver does
	Log   *probe.Log
	Clock clock.Clock
	// Keyframe returns a picture at or before a record, as JSON, and its record.
	Keyframe func(ctx context.Context, seq uint64) (at uint64, state json.RawMessage, err error)
}

// act is one part of what is done, and how many steps have their places in the log then.
type act struct {
	do    func(a *actor, ctx context.Context) error
	steps int
}

var acts = map[string]act{
	"begin": {(*actor).begin, slices.IndexFunc(Steps, func(s Step) bool { return s.Act })},
	"stop":  {(*actor).stop, 1 + slices.IndexFunc(Steps, func(s Step) bool { return s.Act })},
	"back":  {(*actor).back, len(Steps)},
	"end":   {(*actor).end, 0},
}

// Act does the next part of a tour, and waits until the log says what its steps tell of. For what the program does not
// show within [patience], as in a held world, the error is 504. Others are the server's and the sandbox's. Requests are
// made in the name of the agent page.
func (m *Machine) Act(ctx context.Context, page string, t *Tour) error {
	act, ok := acts[t.Do]
	if !ok {
		return apierrors.NewBadRequest("do: want begin, stop, back or end")
	}
	a := &actor{Machine: m, Tour: t, readTo: t.From, page: page}
	if a.name() == "" && t.Do != "begin" {
		return apierrors.NewBadRequest("key: want that of the tour's pod")
	}
	t.Do = ""
	if err := act.do(a, ctx); err != nil || act.steps == 0 {
		return err
	}
	return a.tell(ctx, act.steps)
}

// actor does one act.
type actor struct {
	*Machine
	*Tour
	past          // of the tour, as far as it was read
	readTo uint64 // the newest record that was read
	page   string // the agent of requests
}

// tell waits until the first n steps are in the log, and finds them.
func (a *actor) tell(ctx context.Context, n int) error {
	at, picture, err := a.Keyframe(ctx, a.From)
	if err != nil {
		return err
	}
	start, err := fold.Read(picture)
	if err != nil {
		return err
	}
	for r := range a.Log.Between(at, a.From) {
		start.Apply([]probe.Record{*r})
	}
	_, err = a.await(ctx, func() probe.Record {
		p := newPlot(a.Tour, start, a.records)
		last := probe.Record{}
		for _, rest := range rests[:n] {
			if last = rest(p); last.Seq == 0 {
				break
			}
		}
		return last
	})
	a.find(start, a.records, n)
	return err
}

// begin opens the client and creates the pod under the first name that is free.
func (a *actor) begin(ctx context.Context) error {
	if err := a.open(ctx); err != nil {
		return err
	}
	for n := 1; ; n++ {
		name := "my-pod"
		if n > 1 {
			name = fmt.Sprint(name, "-", n)
		}
		_, err := a.create(ctx, name)
		if apierrors.IsAlreadyExists(err) {
			continue
		}
		a.Key = metav1.NamespaceDefault + "/" + name
		return err
	}
}

// stop stops the client from reading, and changes the pod until the client can take no more: the next change would close
// it. A small ring must not lose what the client has to come back for.
func (a *actor) stop(ctx context.Context) error {
	if !a.isOpen() { // the tour was left, and took its client and perhaps its pod along
		var found corev1.PodList
		err := a.ask(ctx, http.MethodGet, "?fieldSelector=metadata.name%3D"+url.QueryEscape(a.name()), nil, &found)
		if err == nil && len(found.Items) == 0 {
			_, err = a.create(ctx, a.name())
		}
		if err != nil {
			return err
		}
		if err := a.open(ctx); err != nil {
			return err
		}
	}
	opened, err := a.await(ctx, a.stream)
	if err != nil {
		return err
	}
	if err := a.turn(ctx, "line.stall", "true"); err != nil {
		return err
	}
	of := func(point probe.Point) moment { return moment{point: point, who: opened.Subject, from: opened.Seq} }
	full := false
	for n, left := 1, most; left > 0; n, left = n+1, left-1 {
		if a.Read, err = a.change(ctx, n, 2000); err != nil {
			return err
		}
		if a.read(); full || len(a.all(of(probe.ResultBlocked))) == 0 {
			continue
		}
		full = true
		sent := moment{point: probe.InputSent, who: opened.Subject, rv: a.Read}
		last, err := a.await(ctx, func() probe.Record { return a.first(sent) })
		if err != nil {
			return err
		}
		waiting := len(a.all(of(probe.InputSent))) - len(a.all(of(probe.InputReceived)))
		left = min(left, last.Args[1]-waiting+1, a.Ring-spare-n+1)
	}
	return a.handled(ctx, a.Read)
}

// back lets the client come back, and read what it missed; then keeps it away until the ring has lost what it read last,
// and lets it come back again. At the end the pod is created once more.
func (a *actor) back(ctx context.Context) error {
	before, err := a.await(ctx, a.stream)
	if err != nil {
		return err
	}
	if err := cmp.Or(a.turn(ctx, "line.drop", ""), a.turn(ctx, "line.stall", "false")); err != nil {
		return err
	}
	// The pod may have been changed by others, too, and, if this is tried again, the client may know the version.
	_, err = a.await(ctx, func() probe.Record {
		if now := a.stream(); now.Subject != before.Subject && max(resumedAt(now), a.sent().RV) >= a.Read {
			return now
		}
		return probe.Record{}
	})
	if err != nil {
		return err
	}
	if a.Ring <= largest {
		if err := a.overrun(ctx); err != nil {
			return err
		}
	}
	if err := a.delete(ctx); err != nil {
		return err
	}
	created, err := a.create(ctx, a.name())
	if err != nil {
		return err
	}
	return a.handled(ctx, created)
}

// overrun keeps the client away until the ring has lost what it knows, and waits until it has begun again.
func (a *actor) overrun(ctx context.Context) error {
	if err := a.turn(ctx, "line.cut", "true"); err != nil {
		return err
	}
	for n := range a.Ring + 1 {
		if _, err := a.change(ctx, n, 0); err != nil {
			return err
		}
	}
	if err := a.turn(ctx, "line.cut", "false"); err != nil {
		return err
	}
	_, err := a.await(ctx, func() probe.Record {
		if sent := a.sent(); sent.Type == "BOOKMARK" {
			return sent
		}
		return probe.Record{}
	})
	return err
}

// end removes the client and the pod, as far as they are still there.
func (a *actor) end(ctx context.Context) error {
	if a.isOpen() {
		_ = a.Sandbox.RemoveWatcher(ctx, a.ID) // it may have gone meanwhile
	}
	err := a.delete(ctx)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// ---- the client

// open opens the client, and returns when the log says so. It watches from now on, and so knows a version from its
// beginning.
func (a *actor) open(ctx context.Context) error {
	var now corev1.PodList
	if err := a.ask(ctx, http.MethodGet, "?limit=1", nil, &now); err != nil {
		return err
	}
	id, _, err := a.Sandbox.AddWatcher(ctx, sandbox.WatcherOptions{
		Resource: "pods", Tour: true, ResourceVersion: now.ResourceVersion, Bookmarks: true, WatchList: true,
	})
	if err != nil {
		return err
	}
	a.ID = id
	for _, each := range a.Sandbox.Watchers() {
		if each.ID == id {
			a.Tour.Agent = each.UserAgent
		}
	}
	_, err = a.await(ctx, a.stream)
	return err
}

func (a *actor) isOpen() bool {
	return slices.ContainsFunc(a.Sandbox.Watchers(), func(w sandbox.WatcherInfo) bool { return w.ID == a.ID })
}

func (a *actor) turn(ctx context.Context, name, value string) error {
	_, err := a.Sandbox.Turn(ctx, sandbox.Knob{Name: name, Target: a.Tour.Agent, Value: value})
	return err
}

// stream is how the client's newest stream was opened.
func (a *actor) stream() probe.Record {
	return a.newest(moment{point: probe.WireOpened, text: a.Tour.Agent})
}

// sent is the newest that was written to that stream.
func (a *actor) sent() probe.Record {
	return a.newest(moment{point: probe.FrameWritten, who: cmp.Or(a.stream().Subject, nobody)})
}

// ---- the pod

func (a *actor) name() string { return a.Key[strings.LastIndex(a.Key, "/")+1:] }

// create creates the pod under a name, and returns its version.
func (a *actor) create(ctx context.Context, name string) (rv uint64, err error) {
	var made corev1.Pod
	err = a.ask(ctx, http.MethodPost, "", map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": name, "labels": map[string]string{"app": "my-app"}},
		"spec":     map[string]any{"containers": []map[string]string{{"name": "main", "image": "example.com/main:1"}}},
	}, &made)
	return versionOf(made.ResourceVersion), err
}

// change changes the pod for the n-th time, by a text of a size, and returns its version then.
func (a *actor) change(ctx context.Context, n, size int) (rv uint64, err error) {
	var changed corev1.Pod
	text := fmt.Sprint(n, " ", strings.Repeat("·", size))
	err = a.ask(ctx, http.MethodPatch, "/"+url.PathEscape(a.name()), map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{"tour": text}},
	}, &changed)
	return versionOf(changed.ResourceVersion), err
}

// delete deletes the pod at once.
func (a *actor) delete(ctx context.Context) error {
	return a.ask(ctx, http.MethodDelete, "/"+url.PathEscape(a.name())+"?gracePeriodSeconds=0", nil, nil)
}

// handled waits until a handler was called with a version.
func (a *actor) handled(ctx context.Context, rv uint64) error {
	_, err := a.await(ctx, func() probe.Record { return a.first(moment{point: probe.HandlerCalled, rv: rv}) })
	return err
}

// ask asks the API server for what is below its pods, and reads the answer into an object, if there is one.
func (a *actor) ask(ctx context.Context, method, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	const pods = "/api/v1/namespaces/" + metav1.NamespaceDefault + "/pods"
	request, err := http.NewRequestWithContext(ctx, method, pods+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	if body == nil {
		request.Body, request.ContentLength = http.NoBody, 0
	}
	request.Header.Set("User-Agent", a.page)
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	answered := &answer{code: http.StatusOK, header: http.Header{}}
	a.API.ServeHTTP(answered, request)
	if answered.code >= http.StatusBadRequest {
		refused := &apierrors.StatusError{}
		if err := json.Unmarshal(answered.body.Bytes(), &refused.ErrStatus); err != nil {
			return fmt.Errorf("%s %s: %d", method, path, answered.code)
		}
		return refused
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answered.body.Bytes(), into)
}

// answer is an [http.ResponseWriter] that keeps what is written.
type answer struct {
	code   int
	header http.Header
	body   bytes.Buffer
}

func (w *answer) Header() http.Header            { return w.header }
func (w *answer) WriteHeader(code int)           { w.code = code }
func (w *answer) Write(text []byte) (int, error) { return w.body.Write(text) }

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
func (a *actor) await(ctx context.Context, find func() probe.Record) (probe.Record, error) {
	for began := a.Clock.Now(); a.Clock.Since(began) < patience; {
		a.read()
		if r := find(); r.Seq > 0 {
			return r, nil
		}
		if err := routine.Sleep(ctx, a.Clock, tick); err != nil {
			return probe.Record{}, err
		}
	}
	const standing = "The program does not continue. Is it held, or stopped by a debugger?"
	return probe.Record{}, negotiation.Refusal(http.StatusGatewayTimeout, standing)
}
