// Package resources has the differences between kinds, except for storage: strategies (with defaults and validation),
// the labels and fields for selectors, and the columns of tables. It does not use storage or requests, and has no
// state. Chapter 07 describes strategies; its kinds.go names, for each kind, the parts from this package.
package resources

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// freely is a strategy that changes nothing and accepts every object whose name is a DNS subdomain.
type freely struct{}

func (freely) AllowCreateOnUpdate() bool                          { return false }
func (freely) AllowUnconditionalUpdate() bool                     { return true }
func (freely) Default(runtime.Object)                             {}
func (freely) PrepareForCreate(runtime.Object)                    {}
func (freely) PrepareForUpdate(_, _ runtime.Object)               {}
func (freely) Validate(runtime.Object) field.ErrorList            { return nil }
func (freely) ValidateUpdate(_, _ runtime.Object) field.ErrorList { return nil }

func (freely) ValidateName(name string, prefix bool) []string {
	return validation.NameIsDNSSubdomain(name, prefix)
}

// attrs returns a function that returns the labels and the selectable fields of an object of type T.
func attrs[T metav1.Object](selectable func(T) fields.Fields) func(runtime.Object) (labels.Set, fields.Fields, error) {
	return func(obj runtime.Object) (labels.Set, fields.Fields, error) {
		of, ok := obj.(T)
		if !ok {
			return nil, nil, fmt.Errorf("%T instead of %T", obj, of)
		}
		return of.GetLabels(), selectable(of), nil
	}
}

// KeptStrategy is for kinds that the server only stores. Users write the spec, controllers the status.
//
// Differs: upstream sets defaults, and checks every field.
type KeptStrategy struct{ freely }

// PrepareForCreate clears the status.
func (KeptStrategy) PrepareForCreate(obj runtime.Object) { setPart(obj, nil, "Status") }

// PrepareForUpdate keeps the old status.
func (KeptStrategy) PrepareForUpdate(obj, old runtime.Object) { setPart(obj, old, "Status") }

// SpecStrategy is a [KeptStrategy] that counts changes of the spec in the generation.
//
// Differs: a CSIDriver has a [VersionedStrategy], and so no generation; upstream counts its changes.
type SpecStrategy struct{ KeptStrategy }

// PrepareForCreate also sets the generation to 1.
func (s SpecStrategy) PrepareForCreate(obj runtime.Object) {
	s.KeptStrategy.PrepareForCreate(obj)
	obj.(metav1.Object).SetGeneration(1)
}

// PrepareForUpdate also counts a change of the spec.
func (s SpecStrategy) PrepareForUpdate(obj, old runtime.Object) {
	s.KeptStrategy.PrepareForUpdate(obj, old)
	if !equality.Semantic.DeepEqual(part(obj, "Spec"), part(old, "Spec")) {
		accessor := obj.(metav1.Object)
		accessor.SetGeneration(accessor.GetGeneration() + 1)
	}
}

// VersionedStrategy is a [KeptStrategy] that requires a resource version in updates.
type VersionedStrategy struct{ KeptStrategy }

// AllowUnconditionalUpdate returns false: an update must have a resource version.
func (VersionedStrategy) AllowUnconditionalUpdate() bool { return false }

// BudgetStrategy is for disruption budgets: a [SpecStrategy] that requires a resource version in updates.
type BudgetStrategy struct{ SpecStrategy }

// AllowUnconditionalUpdate returns false: an update must have a resource version.
func (BudgetStrategy) AllowUnconditionalUpdate() bool { return false }

// KeptStatusStrategy is for the status of all kinds but namespaces and pods, which have status strategies of their own.
type KeptStatusStrategy struct{ KeptStrategy }

// PrepareForUpdate keeps the old spec.
func (KeptStatusStrategy) PrepareForUpdate(obj, old runtime.Object) { setPart(obj, old, "Spec") }

// part returns a field of an object by the field's name in Go; nil: there is no such field.
func part(obj runtime.Object, name string) any {
	value := reflect.ValueOf(obj).Elem().FieldByName(name)
	if !value.IsValid() {
		return nil
	}
	return value.Interface()
}

// setPart copies a field, if the kind has it, from another object; without that object, it clears the field.
func setPart(obj, from runtime.Object, name string) {
	if from == nil {
		from = reflect.New(reflect.TypeOf(obj).Elem()).Interface().(runtime.Object)
	}
	if value := part(from.DeepCopyObject(), name); value != nil {
		reflect.ValueOf(obj).Elem().FieldByName(name).Set(reflect.ValueOf(value))
	}
}

// SetPropagationFinalizers sets the finalizers of an object for the propagation policy of its deletion. With Orphan or
// Foreground the object stays, with a deletion timestamp, until a garbage collector has handled its dependents. With
// Background, the usual policy, the object is removed at once, and the collector handles the dependents later. Without
// a policy the finalizers do not change.
//
// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: deletionFinalizersForGarbageCollection
func SetPropagationFinalizers(object metav1.Object, options *metav1.DeleteOptions) {
	policy := options.PropagationPolicy
	//lint:ignore SA1019 clients older than 1.7 still send it
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
