package resources

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// LeaseStrategy is for leases, by which one of several controllers holds the right to act.
//
// Differs: no coordinated leader election: a strategy and a preferred holder are kept and not looked at.
type LeaseStrategy struct{ freely }

// AllowCreateOnUpdate lets an update of a missing lease create it.
func (LeaseStrategy) AllowCreateOnUpdate() bool { return true }

// Validate checks the numbers.
func (LeaseStrategy) Validate(obj runtime.Object) (problems field.ErrorList) {
	spec := &obj.(*coordinationv1.Lease).Spec
	if n := spec.LeaseDurationSeconds; n != nil && *n <= 0 {
		problems = append(problems, field.Invalid(field.NewPath("spec", "leaseDurationSeconds"), *n,
			"must be greater than 0"))
	}
	if n := spec.LeaseTransitions; n != nil && *n < 0 {
		problems = append(problems,
			field.Invalid(field.NewPath("spec", "leaseTransitions"), *n, "must be greater than or equal to 0"))
	}
	return problems
}

// ValidateUpdate is Validate.
func (s LeaseStrategy) ValidateUpdate(obj, _ runtime.Object) field.ErrorList { return s.Validate(obj) }
