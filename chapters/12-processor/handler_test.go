package processor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	deltafifo "listwatch/chapters/10-deltafifo"
	"listwatch/internal/check/assert"
)

func TestFuncsMayBeNil(t *testing.T) {
	for _, h := range []ResourceEventHandler{ResourceEventHandlerFuncs{}, ResourceEventHandlerDetailedFuncs{}} {
		h.OnAdd(pod("a", 1), true)
		h.OnUpdate(pod("a", 1), pod("a", 2))
		h.OnDelete(pod("a", 2))
	}
}

func TestFuncsAreCalled(t *testing.T) {
	r := &recorder{}
	for _, h := range []ResourceEventHandler{
		ResourceEventHandlerFuncs{AddFunc: func(obj any) { r.OnAdd(obj, false) }, UpdateFunc: r.OnUpdate,
			DeleteFunc: r.OnDelete},
		ResourceEventHandlerDetailedFuncs{AddFunc: r.OnAdd, UpdateFunc: r.OnUpdate, DeleteFunc: r.OnDelete},
	} {
		h.OnAdd(pod("a", 1), true)
		h.OnUpdate(pod("a", 1), pod("a", 2))
		h.OnDelete(pod("a", 2))
	}
	want := []string{"+a@1", "~a@1>2", "-a@2", "+a@1*", "~a@1>2", "-a@2"}
	assert.Equal(t, cmp.Diff(want, r.got()), "")
}

func TestFilterMakesAddsAndDeletesOfUpdates(t *testing.T) {
	r := &recorder{}
	even := func(obj any) bool { return deltafifo.VersionOf(obj)%2 == 0 }
	h := FilteringResourceEventHandler{FilterFunc: even, Handler: r}
	h.OnAdd(pod("a", 1), true)
	h.OnUpdate(pod("a", 1), pod("a", 2))
	h.OnUpdate(pod("a", 2), pod("a", 4))
	h.OnUpdate(pod("a", 4), pod("a", 5))
	h.OnUpdate(pod("a", 5), pod("a", 7))
	h.OnDelete(pod("a", 9))
	h.OnAdd(pod("b", 10), true)
	h.OnDelete(pod("b", 12))
	assert.Equal(t, cmp.Diff([]string{"+a@2", "~a@2>4", "-a@4", "+b@10*", "-b@12"}, r.got()), "")
}

type typedRecorder struct {
	recorder
	deleted []DeletedObject[*corev1.Pod]
}

func (r *typedRecorder) OnAdd(obj *corev1.Pod, initial bool)   { r.recorder.OnAdd(obj, initial) }
func (r *typedRecorder) OnUpdate(old, obj *corev1.Pod)         { r.recorder.OnUpdate(old, obj) }
func (r *typedRecorder) OnDelete(d DeletedObject[*corev1.Pod]) { r.deleted = append(r.deleted, d) }

func TestTypedHandlerIsSparedTombstones(t *testing.T) {
	r := &typedRecorder{}
	h := Untyped[*corev1.Pod](r)
	h.OnAdd(pod("a", 1), true)
	h.OnUpdate(pod("a", 1), pod("a", 2))
	last := pod("a", 3)
	for _, obj := range []any{
		last,
		deltafifo.DeletedFinalStateUnknown{Key: "default/a", Obj: last},
		deltafifo.DeletedFinalStateUnknown{Key: "default/a"},
	} {
		h.OnDelete(obj)
	}
	assert.Equal(t, cmp.Diff([]string{"+a@1*", "~a@1>2"}, r.got()), "")
	for i, d := range r.deleted {
		if d.GetKey() != "default/a" || d.GetNamespace() != "default" || d.GetName() != "a" {
			t.Errorf("%d: key %q namespace %q name %q", i, d.GetKey(), d.GetNamespace(), d.GetName())
		}
		if (d.OptionalObj == last) != (i < 2) || (d.FinalStateUnknown == nil) != (i == 0) {
			t.Errorf("%d: %v", i, d)
		}
	}
	node := DeletedObject[*corev1.Node]{OptionalObj: &corev1.Node{}}
	node.OptionalObj.Name = "n"
	if node.GetKey() != "n" || node.GetName() != "n" || node.GetNamespace() != "" {
		t.Errorf("without namespace: key %q", node.GetKey())
	}
	assert.Equal(t, (DeletedObject[*corev1.Node]{}).GetKey(), "", "of nothing")
}
