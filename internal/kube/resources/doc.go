// Package resources is what the kinds are, apart from where they are kept: how they are written (strategies, defaults,
// validation; those of pods stand in the registry's chapter), what selectors see of them, and their rows. It knows no
// storage and no request.
package resources

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// freely is the strategy of a kind that accepts everything.
type freely struct{}

// AllowUnconditionalUpdate says yes.
func (freely) AllowUnconditionalUpdate() bool { return true }

// PrepareForCreate changes nothing.
func (freely) PrepareForCreate(runtime.Object) {}

// Validate finds nothing wrong.
func (freely) Validate(runtime.Object) field.ErrorList { return nil }

// PrepareForUpdate changes nothing.
func (freely) PrepareForUpdate(_, _ runtime.Object) {}

// ValidateUpdate finds nothing wrong.
func (freely) ValidateUpdate(_, _ runtime.Object) field.ErrorList { return nil }
