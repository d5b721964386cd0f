package scenario

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	listwatch "listwatch/chapters/09-listwatch"
	"listwatch/internal/probe"
	"listwatch/internal/routine"
	"listwatch/internal/sandbox"
)

const (
	namespace = "default"
	label     = sandbox.StoryLabel
	nowhere   = "nowhere" // the node on which most of them stand: no scheduler and no kubelet cares
	beat      = 5 * time.Millisecond
	eye       = 300 * time.Millisecond // what an eye needs between two things
)

// stagehand is what a story works with: a client, the knobs, and the log since it began. What its methods cannot do ends the story,
// by way of [must]; the story's own goroutine calls them.
type stagehand struct {
	*World
	*sandbox.Telling
	ctx    context.Context // of this one story: it ends with it
	id     string
	client *listwatch.RESTClient
	from   uint64
	group  routine.Group

	// Owned by the story's goroutine.
	steps  []Step
	key    uint64
	undo   []func() // from the last to the first, when the story is over: what the sandbox does not undo
	pods   map[string]bool
	seen   []probe.Record // of the log since the story began, as far as it was read
	readTo uint64
}

func newStagehand(t *sandbox.Telling, w *World, id string) *stagehand {
	last := w.Log.Last()
	return &stagehand{
		World: w, Telling: t, id: id, from: last, readTo: last, pods: map[string]bool{},
		client: w.Pipeline.Client.NewClient("story-"+id, nil, nil),
	}
}

// failure is what ends a story before its time, wherever in it that is.
type failure struct{ err error }

// must ends the story with err, if that is not nil.
func must(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// ok returns value, or ends the story with err.
func ok[T any](value T, err error) T {
	must(err)
	return value
}

// tried returns the failure with which act ended, nil if it came to its end.
func tried(act func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r.err
		default:
			panic(r)
		}
	}()
	act()
	return nil
}

// putBack puts back what only the story knows of.
func (s *stagehand) putBack() {
	for i := len(s.undo) - 1; i >= 0; i-- {
		s.undo[i]()
	}
}

// step notes what was done.
func (s *stagehand) step(format string, args ...any) {
	s.steps = append(s.steps, Step{Text: fmt.Sprintf(format, args...), Seq: s.Log.Last()})
}

// curtain begins the story here: what was done until now is not told.
func (s *stagehand) curtain() {
	s.from = s.Log.Last()
	s.readTo, s.seen, s.steps = s.from, nil, nil
}

// until waits for what no record says.
func (s *stagehand) until(holds func() bool) {
	for !holds() {
		s.pause(eye)
	}
}

// turn turns a knob. When the story is over it stands again as before.
func (s *stagehand) turn(name, target, value string) {
	must(s.Turn(sandbox.Knob{Name: name, Target: target, Value: value}))
}

// pause lets people look.
func (s *stagehand) pause(d time.Duration) { must(routine.Sleep(s.ctx, s.Clock, d)) }

// ---- pods

// name is that of the n-th pod of the story: "ring-wrap-a", "ring-wrap-b", …
func (s *stagehand) name(n int) string { return s.id + "-" + string(rune('a'+n)) }

// create makes a pod on a node, with labels besides the story's own, and returns its version.
func (s *stagehand) create(name, node string, labels map[string]string, edit ...func(pod *corev1.Pod)) uint64 {
	s.pods[name] = true
	_ = s.delete(name) // of a story that did not end well
	return versionOf(ok(s.post(name, node, labels, edit...).Get()))
}

// post is create for a pod of which there may be one already.
func (s *stagehand) post(name, node string, labels map[string]string, edit ...func(pod *corev1.Pod)) listwatch.Result {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{label: s.id}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "example.com/main:1"}}},
	}
	for key, value := range labels {
		pod.Labels[key] = value
	}
	for _, change := range edit {
		change(pod)
	}
	return s.client.Post().Namespace(namespace).Resource("pods").Body(pod).Do(s.Writing)
}

// relabel gives a pod another value of one label, and returns its version.
func (s *stagehand) relabel(name, key, value string) uint64 {
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, key, value)
	return versionOf(ok(s.client.Patch(types.MergePatchType).Namespace(namespace).Resource("pods").Name(name).Body(patch).Do(s.Writing).Get()))
}

// delete deletes a pod at once. A pod that is not there is no error.
func (s *stagehand) delete(name string) error {
	zero := int64(0)
	err := s.client.Delete().Namespace(namespace).Resource("pods").Name(name).Body(&metav1.DeleteOptions{GracePeriodSeconds: &zero}).Do(s.Writing).Error()
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// churn changes a pod n times, and returns its last version. The pod is made if it is not there.
func (s *stagehand) churn(name string, n int) (last uint64) {
	if !s.pods[name] {
		last = s.create(name, nowhere, nil)
		n--
	}
	for i := range n {
		last = s.relabel(name, "turn", strconv.Itoa(i))
	}
	s.inRing(last)
	return last
}

// inRing waits for a version. A writer may have its answer before the cache has the event.
func (s *stagehand) inRing(rv uint64) {
	s.await("the event in the ring", func(r *probe.Record) bool { return r.Point == probe.RingAppend && r.RV == rv })
}

// list lists pods of the story with the given options.
func (s *stagehand) list(options metav1.ListOptions) *corev1.PodList { return ok(s.tryList(options)) }

func (s *stagehand) tryList(options metav1.ListOptions) (*corev1.PodList, error) {
	options.LabelSelector = label + "=" + s.id
	var list corev1.PodList
	return &list, s.client.Get().Namespace(namespace).Resource("pods").VersionedParams(&options).Do(s.ctx).Into(&list)
}

func versionOf(obj runtime.Object) uint64 {
	return ok(strconv.ParseUint(ok(meta.Accessor(obj)).GetResourceVersion(), 10, 64))
}

// ---- the log

// await waits for a record since the story began, and returns it.
func (s *stagehand) await(what string, match func(r *probe.Record) bool) probe.Record {
	return s.awaitAfter(s.from, what, match)
}

// awaitAfter waits for a record after another.
func (s *stagehand) awaitAfter(seq uint64, what string, match func(r *probe.Record) bool) probe.Record {
	began := s.Clock.Now()
	for {
		must(s.read())
		for i := range s.seen {
			if r := &s.seen[i]; r.Seq > seq && match(r) {
				return *r
			}
		}
		if s.Clock.Since(began) > patience {
			must(fmt.Errorf("waited %v for %s, and it did not come", patience, what))
		}
		if err := routine.Sleep(s.ctx, s.Clock, beat); err != nil {
			must(fmt.Errorf("wait for %s: %w", what, err))
		}
	}
}

// maxRead is how many records one story looks at.
const maxRead = 1 << 18

// read takes in what was written since.
func (s *stagehand) read() error {
	var ok bool
	n := len(s.seen)
	if s.seen, ok = s.Log.Since(s.seen, s.readTo, 1<<16); !ok {
		return errors.New("the log has moved on: there is too much traffic to see anything")
	}
	if len(s.seen) > maxRead {
		return errors.New("too much has happened to see anything")
	}
	if len(s.seen) > n {
		s.readTo = s.seen[len(s.seen)-1].Seq
	}
	return nil
}

// count returns how many records since the story began match.
func (s *stagehand) count(match func(r *probe.Record) bool) (n int) {
	for i := range s.seen {
		if match(&s.seen[i]) {
			n++
		}
	}
	return n
}

func point(p probe.Point) func(*probe.Record) bool {
	return func(r *probe.Record) bool { return r.Point == p }
}

func of(p probe.Point, subject string) func(*probe.Record) bool {
	return func(r *probe.Record) bool { return r.Point == p && r.Subject == subject }
}

// about reports whether a record is about a pod of that name.
func about(r *probe.Record, name string) bool { return strings.HasSuffix(r.Key, "/"+name) }

// lane waits for the newest stream of a client after a record, and returns the id of the watcher that serves it.
func (s *stagehand) lane(after uint64, userAgent string) string {
	return s.awaitAfter(after, "a stream of "+userAgent, func(r *probe.Record) bool {
		return r.Point == probe.WireOpened && strings.HasPrefix(r.Text, userAgent+" ")
	}).Subject
}
