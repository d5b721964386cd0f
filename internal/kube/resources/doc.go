// Package resources has what differs from kind to kind, apart from storage: how objects are written (strategies,
// defaults, validation), what selectors see of them, and the columns of their tables. It knows no storage and no
// request. The registry's chapter says what a strategy must do, and lists the kinds.
package resources

import (
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// freely is the strategy of a kind that accepts everything.
type freely struct{}

// Default changes nothing.
func (freely) Default(runtime.Object) {}

// ValidateName accepts DNS subdomains.
func (freely) ValidateName(name string, prefix bool) []string {
	return validation.NameIsDNSSubdomain(name, prefix)
}

// AllowCreateOnUpdate returns false.
func (freely) AllowCreateOnUpdate() bool { return false }

// AllowUnconditionalUpdate returns true.
func (freely) AllowUnconditionalUpdate() bool { return true }

// PrepareForCreate changes nothing.
func (freely) PrepareForCreate(runtime.Object) {}

// Validate accepts everything.
func (freely) Validate(runtime.Object) field.ErrorList { return nil }

// PrepareForUpdate changes nothing.
func (freely) PrepareForUpdate(_, _ runtime.Object) {}

// ValidateUpdate accepts everything.
func (freely) ValidateUpdate(_, _ runtime.Object) field.ErrorList { return nil }
