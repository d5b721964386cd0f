// Package resources has what differs from kind to kind, apart from storage: how objects are written (strategies,
// defaults, validation), what selectors see of them, and the columns of their tables. It knows no storage and no
// request. The registry's chapter says what a strategy must do, and lists the kinds.
package resources

import (
	"k8s.io/apimachinery/pkg/api/validation"
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
