package resources

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateEnv checks one variable: it has a name, and one value from one place.
func validateEnv(env *corev1.EnvVar, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	if env.Name == "" {
		problems = append(problems, field.Required(path.Child("name"), ""))
	}
	problems = append(problems, valid(env.Name, validation.IsRelaxedEnvVarName, path.Child("name"))...)
	source := env.ValueFrom
	if source == nil {
		return problems
	}
	path = path.Child("valueFrom")
	switch n := countSet(source); {
	case n == 0:
		return append(problems, field.Invalid(path, "", "must specify one of: `fieldRef`, `resourceFieldRef`, "+
			"`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"))
	case n > 1:
		return append(problems, field.Invalid(path, "", "may not have more than one field specified at a time"))
	case env.Value != "":
		return append(problems, field.Invalid(path, "", "may not be specified when `value` is not empty"))
	}
	if ref := source.ConfigMapKeyRef; ref != nil {
		problems = append(problems, validateKeyRef(ref.Name, ref.Key, path.Child("configMapKeyRef"))...)
	}
	if ref := source.SecretKeyRef; ref != nil {
		problems = append(problems, validateKeyRef(ref.Name, ref.Key, path.Child("secretKeyRef"))...)
	}
	if ref := source.FieldRef; ref != nil && ref.FieldPath == "" {
		problems = append(problems, field.Required(path.Child("fieldRef", "fieldPath"), ""))
	}
	return problems
}

func validateKeyRef(name, key string, path *field.Path) field.ErrorList {
	problems := valid(name, validation.IsDNS1123Subdomain, path.Child("name"))
	if key == "" {
		return append(problems, field.Required(path.Child("key"), ""))
	}
	return append(problems, valid(key, validation.IsConfigMapKey, path.Child("key"))...)
}

// validateMounts checks what a container mounts, and where: each place once.
func validateMounts(mounts []corev1.VolumeMount, volumes sets.Set[string], path *field.Path) field.ErrorList {
	var problems field.ErrorList
	places := sets.New[string]()
	for i, mount := range mounts {
		at := path.Index(i)
		switch {
		case mount.Name == "":
			problems = append(problems, field.Required(at.Child("name"), ""))
		case !volumes.Has(mount.Name):
			problems = append(problems, field.NotFound(at.Child("name"), mount.Name))
		}
		switch {
		case mount.MountPath == "":
			problems = append(problems, field.Required(at.Child("mountPath"), ""))
		case places.Has(mount.MountPath):
			problems = append(problems, field.Invalid(at.Child("mountPath"), mount.MountPath, "must be unique"))
		}
		places.Insert(mount.MountPath)
	}
	return problems
}

// validateVolume checks that a volume has a name of its own and comes from one place.
func validateVolume(volume *corev1.Volume, taken sets.Set[string], path *field.Path) field.ErrorList {
	problems := validateUniqueLabel(volume.Name, taken, path.Child("name"))
	if countSet(&volume.VolumeSource) > 1 {
		problems = append(problems, field.Forbidden(path, "may not specify more than 1 volume type"))
	}
	if source := volume.ConfigMap; source != nil && source.Name == "" {
		problems = append(problems, field.Required(path.Child("configMap", "name"), ""))
	}
	if source := volume.Secret; source != nil && source.SecretName == "" {
		problems = append(problems, field.Required(path.Child("secret", "secretName"), ""))
	}
	if source := volume.HostPath; source != nil && source.Path == "" {
		problems = append(problems, field.Required(path.Child("hostPath", "path"), ""))
	}
	return problems
}

// validateProbe checks that a probe asks in one way. once: one success must be enough for it.
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
