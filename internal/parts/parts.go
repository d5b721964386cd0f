// Package parts keeps once what objects have in common. Pods that are made from one template differ in little but their names,
// and several caches of this process hold each of them: see docs/COSTS.md for what that is worth.
//
// A part that is shared must not be changed. The same is true of every object that comes out of a cache.
package parts

import (
	"crypto/sha256"
	"runtime"
	"slices"
	"sync"
	"weak"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxKept is how many parts are known at a time; when there are more, all are forgotten, and objects that come later share with each
// other.
const maxKept = 1024

// Kept is what the objects of one cache have in common. The zero value is ready, and safe for concurrent use.
type Kept struct {
	mu       sync.Mutex // guards the fields below; innermost
	fields   map[string]*metav1.FieldsV1
	managers map[string][]metav1.ManagedFieldsEntry
	metas    map[string]metav1.ObjectMeta // namespace, labels and annotations only
	specs    map[string]corev1.PodSpec    // without the node
	statuses map[string]corev1.PodStatus  // without the pod's addresses
	pods     map[sum]weak.Pointer[corev1.Pod]
}

// sum stands for all that is in a pod: pods with the same sum are equal. The UID and the version would not do, because both may come
// again, with another content, after a backup of etcd was restored.
type sum [sha256.Size]byte

// Whole returns the pod that equals obj and that a cache still holds; if there is none, a pod equal to obj, which shares parts with
// others. So several caches that use it hold one copy of a pod. It writes to nothing that it has returned before, and of its own
// result it returns the same again.
//
// No pod is kept alive by this: a pod that no cache holds any more is forgotten. Objects of other types are returned as they are.
func (k *Kept) Whole(obj any) any {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj
	}
	encoded, err := pod.Marshal()
	if err != nil {
		return obj
	}
	key := sum(sha256.Sum256(append(encoded, pod.APIVersion+" "+pod.Kind...))) // which are not in the encoding
	k.mu.Lock()
	defer k.mu.Unlock()
	if held := k.pods[key].Value(); held != nil {
		return held
	}
	own := new(*pod) // obj may be one of a list, and would keep all of it alive
	k.shareLocked(own)
	if k.pods == nil {
		k.pods = map[sum]weak.Pointer[corev1.Pod]{}
	}
	k.pods[key] = weak.Make(own)
	runtime.AddCleanup(own, k.forget, key)
	return own
}

// forget is called after a pod was freed. An equal one may have come since.
func (k *Kept) forget(key sum) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pods[key].Value() == nil {
		delete(k.pods, key)
	}
}

// Share puts, in place of parts of obj, equal ones of an earlier object. It changes obj, which no other goroutine may know yet.
func (k *Kept) Share(obj any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.shareLocked(obj)
}

func (k *Kept) shareLocked(obj any) {
	if accessor, err := meta.Accessor(obj); err == nil && len(accessor.GetManagedFields()) > 0 {
		accessor.SetManagedFields(k.managersLocked(accessor.GetManagedFields()))
	}
	if pod, ok := obj.(*corev1.Pod); ok {
		k.shareMetaLocked(&pod.ObjectMeta)
		k.shareSpecLocked(&pod.Spec)
		k.shareStatusLocked(&pod.Status)
	}
}

// managersLocked returns what stands in entries. Managers of many objects that write within the same second leave equal entries;
// otherwise the sets of fields, at least, are equal to others.
func (k *Kept) managersLocked(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	encoded, err := (&metav1.ObjectMeta{ManagedFields: entries}).Marshal()
	if err != nil {
		return entries
	}
	if shared, ok := k.managers[string(encoded)]; ok {
		return shared
	}
	own := slices.Clone(entries) // which an object that is shared for the second time may have in common with others
	for i, entry := range own {
		if entry.FieldsV1 != nil {
			own[i].FieldsV1 = first(&k.fields, entry.FieldsV1.GetRawBytes(), entry.FieldsV1)
		}
	}
	return first(&k.managers, encoded, own)
}

func (k *Kept) shareMetaLocked(of *metav1.ObjectMeta) {
	own := metav1.ObjectMeta{Namespace: of.Namespace, Labels: of.Labels, Annotations: of.Annotations}
	if encoded, err := own.Marshal(); err == nil { // maps are written in the order of their keys
		own = first(&k.metas, encoded, own)
		of.Namespace, of.Labels, of.Annotations = own.Namespace, own.Labels, own.Annotations
	}
}

func (k *Kept) shareSpecLocked(of *corev1.PodSpec) {
	own := *of
	own.NodeName = ""
	if encoded, err := own.Marshal(); err == nil {
		node := of.NodeName
		*of = first(&k.specs, encoded, own)
		of.NodeName = node
	}
}

// shareStatusLocked shares the status of pods of one template to which the same happened within the same seconds.
func (k *Kept) shareStatusLocked(of *corev1.PodStatus) {
	own := *of
	own.PodIP, own.PodIPs = "", nil
	if encoded, err := own.Marshal(); err == nil {
		ip, ips := of.PodIP, of.PodIPs
		*of = first(&k.statuses, encoded, own)
		of.PodIP, of.PodIPs = ip, ips
	}
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
