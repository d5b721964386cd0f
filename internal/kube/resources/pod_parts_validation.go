package resources

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateProbe checks that a probe has one handler. once: its success threshold must be 1.
func validateProbe(probe *corev1.Probe, once bool, path *field.Path) field.ErrorList {
	if probe == nil {
		return nil
	}
	var problems field.ErrorList
	switch n := countSet(&probe.ProbeHandler); {
	case n == 0:
		problems = append(problems, field.Required(path, "must specify a handler type"))
	case n > 1:
		problems = append(problems, field.Forbidden(path, "may not specify more than 1 handler type"))
	}
	if once && probe.SuccessThreshold != 1 {
		problems = append(problems, field.Invalid(path.Child("successThreshold"), probe.SuccessThreshold, "must be 1"))
	}
	return problems
}

// validateTolerations checks that each toleration can match a taint.
//
// Differs: the operators Lt and Gt are not known; upstream has them behind a gate.
func validateTolerations(tolerations []corev1.Toleration, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	for i, t := range tolerations {
		at := path.Index(i)
		operator, effect := at.Child("operator"), at.Child("effect")
		problems = append(problems, valid(t.Key, validation.IsQualifiedName, at.Child("key"))...)
		if t.Key == "" && t.Operator != corev1.TolerationOpExists {
			problems = append(problems, field.Invalid(operator, t.Operator,
				`operator must be Exists when `+"`key`"+` is empty, which means "match all values and all keys"`))
		}
		switch t.Operator {
		case corev1.TolerationOpEqual, "":
			problems = append(problems, valid(t.Value, validation.IsValidLabelValue, operator)...)
		case corev1.TolerationOpExists:
			if t.Value != "" {
				problems = append(problems,
					field.Invalid(operator, t.Value, "value must be empty when `operator` is 'Exists'"))
			}
		default:
			problems = append(problems, oneOf(t.Operator,
				[]corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}, operator)...)
		}
		if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
			problems = append(problems,
				field.Invalid(effect, t.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
		}
		if t.Effect != "" {
			problems = append(problems, oneOf(t.Effect, taintEffects, effect)...)
		}
	}
	return problems
}

// countSet returns how many of a struct's fields, which are all pointers, are set.
func countSet(union any) int {
	n := 0
	fields := reflect.ValueOf(union).Elem()
	for i := range fields.NumField() {
		if !fields.Field(i).IsNil() {
			n++
		}
	}
	return n
}
