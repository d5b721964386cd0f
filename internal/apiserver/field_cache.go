package apiserver

import (
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// What a created object's managedFields say follows from the manager's name and from which fields the object has, not from
// its name or the values of its labels. Objects that are made from one template say the same, and to work that out costs
// half of a create. So the note of an object is kept for the next of the same shape.
const (
	maxShapes     = 64   // of one path; when there are more, all are forgotten
	maxShapeBytes = 4096 // of one shape; larger objects are worked out each time
)

// shapes are the notes of objects that were created at one path. It is safe for concurrent use.
type shapes struct {
	mu    sync.Mutex // guards notes; innermost
	notes map[string]metav1.ManagedFieldsEntry
}

// shapeOf returns everything about a new object that its note can depend on: the object itself, without the values of what it
// is called and labelled with. It is "" if there is no short form of it, or if the client has sent a note of its own.
//
// To say more than needed is safe: an object with another value in its spec has another shape, and is worked out.
func shapeOf(obj runtime.Object, manager string) string {
	shallow := reflect.New(reflect.TypeOf(obj).Elem())
	shallow.Elem().Set(reflect.ValueOf(obj).Elem()) // its metadata is overwritten below, and nothing under it is
	accessor, err := meta.Accessor(shallow.Interface())
	if err != nil || len(accessor.GetManagedFields()) > 0 {
		return ""
	}
	accessor.SetName("") // never noted, as the namespace is not
	accessor.SetNamespace("")
	accessor.SetLabels(withoutValues(accessor.GetLabels()))
	accessor.SetAnnotations(withoutValues(accessor.GetAnnotations()))
	encoder, ok := shallow.Interface().(interface{ Marshal() ([]byte, error) })
	if !ok {
		return ""
	}
	encoded, err := encoder.Marshal()
	if err != nil || len(encoded) > maxShapeBytes {
		return ""
	}
	return manager + "\x00" + string(encoded)
}

func withoutValues(values map[string]string) map[string]string {
	if values == nil {
		return nil
	}
	keys := make(map[string]string, len(values))
	for key := range values {
		keys[key] = ""
	}
	return keys
}

// note writes into obj what is known of its shape, with the time of now. It reports whether anything is.
func (s *shapes) note(obj runtime.Object, shape string) bool {
	s.mu.Lock()
	entry, ok := s.notes[shape]
	s.mu.Unlock()
	accessor, err := meta.Accessor(obj)
	if !ok || err != nil {
		return false
	}
	entry.Time = &metav1.Time{Time: time.Now().UTC()}
	entry.FieldsV1 = entry.FieldsV1.DeepCopy() // the object is the caller's
	accessor.SetManagedFields([]metav1.ManagedFieldsEntry{entry})
	return true
}

// keep remembers the note of an object that was worked out.
func (s *shapes) keep(obj runtime.Object, shape string) {
	accessor, err := meta.Accessor(obj)
	if err != nil || len(accessor.GetManagedFields()) != 1 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.notes) >= maxShapes {
		clear(s.notes)
	}
	s.notes[shape] = *accessor.GetManagedFields()[0].DeepCopy()
}
