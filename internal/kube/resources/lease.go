package resources

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// LeaseStrategy is for leases.
//
// Differs: no coordinated leader election: a strategy and a preferred holder are stored and ignored.
type LeaseStrategy struct{ freely }

// AllowCreateOnUpdate returns true.
func (LeaseStrategy) AllowCreateOnUpdate() bool { return true }

// AllowUnconditionalUpdate returns false.
func (LeaseStrategy) AllowUnconditionalUpdate() bool { return false }

// Validate checks the numbers.
func (LeaseStrategy) Validate(obj runtime.Object) field.ErrorList {
	spec, path := &obj.(*coordinationv1.Lease).Spec, field.NewPath("spec")
	return append(
		atLeast(1, spec.LeaseDurationSeconds, "must be greater than 0", path.Child("leaseDurationSeconds")),
		atLeast(0, spec.LeaseTransitions, notNegative, path.Child("leaseTransitions"))...)
}

// ValidateUpdate is Validate.
func (s LeaseStrategy) ValidateUpdate(obj, _ runtime.Object) field.ErrorList { return s.Validate(obj) }
