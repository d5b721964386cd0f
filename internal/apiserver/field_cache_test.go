package apiserver

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	registry "listwatch/chapters/07-registry"
	handlers "listwatch/chapters/08-handlers"
)

// noteOf returns an object's managedFields without their times.
func noteOf(t *testing.T, obj runtime.Object) string {
	t.Helper()
	accessor, err := meta.Accessor(obj)
	if err != nil {
		t.Fatal(err)
	}
	note := ""
	for _, entry := range accessor.GetManagedFields() {
		if entry.Time == nil || entry.Time.IsZero() {
			t.Error("a note without a time")
		}
		note += fmt.Sprintf("%s %s %s %s %s\n", entry.Manager, entry.Operation, entry.APIVersion, entry.Subresource, entry.FieldsV1.Raw)
	}
	return note
}

// Whatever an object has, a note that was kept is the one that would be worked out, whatever the next is called.
func TestAKeptNoteIsTheOneThatWouldBeWorkedOut(t *testing.T) {
	for _, resource := range registry.Resources() {
		t.Run(resource.Name, func(t *testing.T) {
			scope := &handlers.Scope{Resource: resource, Kind: resource.GroupVersionKind()}
			f := newFieldManager(scope).(*fieldManager)
			hits := 0
			for seed := range int64(60) {
				obj := resource.NewFunc()
				randfill.NewWithSeed(seed).NilChance(0.8).NumElements(1, 2).MaxDepth(7).Funcs(
					func(q *apiresource.Quantity, _ randfill.Continue) { *q = apiresource.MustParse("1") },
					func(v *intstr.IntOrString, _ randfill.Continue) { *v = intstr.FromInt32(1) },
					func(v *[]metav1.ManagedFieldsEntry, _ randfill.Continue) { *v = nil },
				).Fill(obj)
				obj.GetObjectKind().SetGroupVersionKind(resource.GroupVersionKind())
				f.Update(resource.NewFunc(), obj.DeepCopyObject(), "one", "")

				other := obj.DeepCopyObject()
				accessor, _ := meta.Accessor(other)
				accessor.SetName("other")
				for key := range accessor.GetLabels() {
					accessor.GetLabels()[key] = "other"
				}
				if f.created.notes[shapeOf(other, "one")].Manager != "" {
					hits++
				}
				want := noteOf(t, f.manager.UpdateNoErrors(resource.NewFunc(), other.DeepCopyObject(), "one"))
				if got := noteOf(t, f.Update(resource.NewFunc(), other, "one", "")); got != want {
					t.Fatalf("seed %d: got\n%s\nwant\n%s", seed, got, want)
				}
			}
			if hits == 0 {
				t.Error("not one note was kept: nothing was compared")
			}
		})
	}
}

func TestNotesAreKeptPerManagerAndInBounds(t *testing.T) {
	resource := registry.ConfigMaps()
	f := newFieldManager(&handlers.Scope{Resource: resource, Kind: resource.GroupVersionKind()}).(*fieldManager)
	for i := range 3 * maxShapes {
		data := map[string]string{fmt.Sprint("key", i): ""}
		for _, manager := range []string{"one", "two"} {
			out := f.Update(resource.NewFunc(), &corev1.ConfigMap{Data: data}, manager, "").(*corev1.ConfigMap)
			if out.ManagedFields[0].Manager != manager {
				t.Fatalf("got %+v, want %s", out.ManagedFields, manager)
			}
		}
	}
	if n := len(f.created.notes); n > maxShapes {
		t.Errorf("%d notes are kept, want at most %d", n, maxShapes)
	}
	sent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "sent", Operation: "Update"}}}}
	if shapeOf(sent, "one") != "" {
		t.Error("a note that a client has sent is ignored")
	}
}
