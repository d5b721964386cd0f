package resources

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SetPropagationFinalizers sets the finalizers of an object for the propagation policy of its deletion. With Orphan or
// Foreground the object stays, marked, until a garbage collector has handled its dependents; with Background, the usual
// policy, the collector notices the end later. Without a policy the finalizers stay.
//
// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: deletionFinalizersForGarbageCollection
func SetPropagationFinalizers(object metav1.Object, options *metav1.DeleteOptions) {
	policy := options.PropagationPolicy
	//lint:ignore SA1019 clients of before 1.7 still send it
	if orphan := options.OrphanDependents; orphan != nil && *orphan {
		policy = new(metav1.DeletePropagationOrphan)
	} else if orphan != nil {
		policy = new(metav1.DeletePropagationBackground)
	}
	if policy == nil {
		return
	}
	wanted := slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(finalizer string) bool {
		return finalizer == metav1.FinalizerOrphanDependents || finalizer == metav1.FinalizerDeleteDependents
	})
	switch *policy {
	case metav1.DeletePropagationOrphan:
		wanted = append(wanted, metav1.FinalizerOrphanDependents)
	case metav1.DeletePropagationForeground:
		wanted = append(wanted, metav1.FinalizerDeleteDependents)
	}
	object.SetFinalizers(wanted)
}
