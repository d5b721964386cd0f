// Package parts keeps once what objects have in common. Pods that are made from one template differ in little but their names,
// and several caches of this process hold each of them: see docs/COSTS.md for what that is worth.
//
// A part that is shared must not be changed. The same is true of every object that comes out of a cache.
package parts

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxKept is how many parts are known at a time; when there are more, all are forgotten, and objects that come later share with each
// other.
const maxKept = 1024

// Kept is what the objects of one cache have in common. The zero value is ready, and safe for concurrent use.
type Kept struct {
	mu     sync.Mutex // guards the fields below; innermost
	fields map[string]*metav1.FieldsV1
	metas  map[string]metav1.ObjectMeta // labels and annotations only
	specs  map[string]corev1.PodSpec    // without the node
}

// Share puts, in place of parts of obj, equal ones of an earlier object. It changes obj, which no other goroutine may know yet.
func (k *Kept) Share(obj any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if accessor, err := meta.Accessor(obj); err == nil {
		k.shareFieldsLocked(accessor.GetManagedFields())
	}
	if pod, ok := obj.(*corev1.Pod); ok {
		k.shareMetaLocked(&pod.ObjectMeta)
		k.shareSpecLocked(&pod.Spec)
	}
}

func (k *Kept) shareFieldsLocked(entries []metav1.ManagedFieldsEntry) {
	for i, entry := range entries {
		if entry.FieldsV1 != nil {
			entries[i].FieldsV1 = first(&k.fields, entry.FieldsV1.GetRawBytes(), entry.FieldsV1)
		}
	}
}

func (k *Kept) shareMetaLocked(of *metav1.ObjectMeta) {
	own := metav1.ObjectMeta{Labels: of.Labels, Annotations: of.Annotations}
	encoded, err := own.Marshal() // maps are written in the order of their keys
	if err != nil {
		return
	}
	shared := first(&k.metas, encoded, own)
	of.Labels, of.Annotations = shared.Labels, shared.Annotations
}

func (k *Kept) shareSpecLocked(of *corev1.PodSpec) {
	own := *of
	own.NodeName = ""
	encoded, err := own.Marshal()
	if err != nil {
		return
	}
	node := of.NodeName
	*of = first(&k.specs, encoded, own)
	of.NodeName = node
}

// first returns the part that was the first to have this encoding, which may be own.
func first[T any](kept *map[string]T, encoding []byte, own T) T {
	if shared, ok := (*kept)[string(encoding)]; ok {
		return shared
	}
	if *kept == nil || len(*kept) >= maxKept {
		*kept = map[string]T{}
	}
	(*kept)[string(encoding)] = own
	return own
}
