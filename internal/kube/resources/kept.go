package resources

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// KeptStrategy is for kinds that are only stored. Users write the spec, controllers the status.
//
// Differs: upstream fills in defaults, and checks every field.
type KeptStrategy struct{ freely }

// PrepareForCreate clears the status.
func (KeptStrategy) PrepareForCreate(obj runtime.Object) { setPart(obj, nil, "Status") }

// PrepareForUpdate keeps the status.
func (KeptStrategy) PrepareForUpdate(obj, old runtime.Object) { setPart(obj, old, "Status") }

// SpecStrategy is a [KeptStrategy] in which the generation counts changes of the spec.
//
// Differs: a CSIDriver, which upstream begins to count at its first change, has no generation.
type SpecStrategy struct{ KeptStrategy }

// PrepareForCreate begins with generation 1.
func (s SpecStrategy) PrepareForCreate(obj runtime.Object) {
	s.KeptStrategy.PrepareForCreate(obj)
	obj.(metav1.Object).SetGeneration(1)
}

// PrepareForUpdate counts a change of the spec.
func (s SpecStrategy) PrepareForUpdate(obj, old runtime.Object) {
	s.KeptStrategy.PrepareForUpdate(obj, old)
	if !equality.Semantic.DeepEqual(part(obj, "Spec"), part(old, "Spec")) {
		accessor := obj.(metav1.Object)
		accessor.SetGeneration(accessor.GetGeneration() + 1)
	}
}

// VersionedStrategy is a [KeptStrategy] in which an update must name a version.
type VersionedStrategy struct{ KeptStrategy }

// AllowUnconditionalUpdate returns false.
func (VersionedStrategy) AllowUnconditionalUpdate() bool { return false }

// BudgetStrategy is for disruption budgets.
type BudgetStrategy struct{ SpecStrategy }

// AllowUnconditionalUpdate returns false.
func (BudgetStrategy) AllowUnconditionalUpdate() bool { return false }

// KeptStatusStrategy is for the status of these kinds, and of nodes.
type KeptStatusStrategy struct{ KeptStrategy }

// PrepareForUpdate keeps the spec.
func (KeptStatusStrategy) PrepareForUpdate(obj, old runtime.Object) { setPart(obj, old, "Spec") }

// part returns a field of an object, by its name in Go; nil if it has none.
func part(obj runtime.Object, name string) any {
	value := reflect.ValueOf(obj).Elem().FieldByName(name)
	if !value.IsValid() {
		return nil
	}
	return value.Interface()
}

// setPart sets a field of an object, if its kind has it, to that of another; nil: to nothing.
func setPart(obj, from runtime.Object, name string) {
	if from == nil {
		from = reflect.New(reflect.TypeOf(obj).Elem()).Interface().(runtime.Object)
	}
	if value := part(from.DeepCopyObject(), name); value != nil {
		reflect.ValueOf(obj).Elem().FieldByName(name).Set(reflect.ValueOf(value))
	}
}
