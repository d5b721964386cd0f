// Package resources is what the kinds of core/v1 are, apart from where they are kept: the defaults and the validation of pods,
// and the rows of all kinds. It knows no storage and no request.
package resources
