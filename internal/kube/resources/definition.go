package resources

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"listwatch/internal/kube/scheme"
)

// DefinitionStrategy is for definitions of custom resources.
//
// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go: strategy
// Differs: a definition is checked for what would make it impossible to serve; upstream's checks fill 2,000 lines. No
// conversion but None. A group of which the server has kinds itself cannot get more.
type DefinitionStrategy struct{}

// DefaultDefinition derives the names that follow from others.
func DefaultDefinition(obj runtime.Object) {
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(obj.(*apiextensionsv1.CustomResourceDefinition))
}

// PrepareForCreate takes the status away.
func (DefinitionStrategy) PrepareForCreate(obj runtime.Object) {
	SpecStrategy{}.PrepareForCreate(obj)
	DefaultDefinition(obj)
}

// PrepareForUpdate keeps the status, and notes in which version objects are written from now on.
func (DefinitionStrategy) PrepareForUpdate(obj, old runtime.Object) {
	SpecStrategy{}.PrepareForUpdate(obj, old)
	definition := obj.(*apiextensionsv1.CustomResourceDefinition)
	for _, version := range definition.Spec.Versions {
		if version.Storage && !slices.Contains(definition.Status.StoredVersions, version.Name) {
			definition.Status.StoredVersions = append(definition.Status.StoredVersions, version.Name)
		}
	}
}

// Validate checks names, versions and schemas.
func (DefinitionStrategy) Validate(obj runtime.Object) (problems field.ErrorList) {
	definition := obj.(*apiextensionsv1.CustomResourceDefinition)
	spec, names, path := &definition.Spec, definition.Spec.Names, field.NewPath("spec")
	nStorage, seen := 0, sets.New[string]()
	for i := range spec.Versions {
		problems = append(problems, validateVersion(&spec.Versions[i], path.Child("versions").Index(i))...)
		if seen.Insert(spec.Versions[i].Name); spec.Versions[i].Storage {
			nStorage++
		}
	}
	for _, rule := range []struct {
		broken bool
		path   string
		value  any
		text   string
	}{
		{definition.Name != names.Plural+"."+spec.Group, "names.plural", names.Plural,
			`metadata.name must be spec.names.plural+"."+spec.group`},
		{!strings.Contains(spec.Group, "."), "group", spec.Group, "should be a domain with at least one dot"},
		{scheme.Scheme.IsGroupRegistered(spec.Group), "group",
			spec.Group, "the server has kinds of this group itself"},
		{len(validation.IsDNS1035Label(names.Plural)) > 0, "names.plural", names.Plural, "must be a DNS label"},
		{len(validation.IsDNS1035Label(strings.ToLower(names.Kind))) > 0, "names.kind", names.Kind,
			"must be a DNS label but for its case"},
		{spec.Scope != apiextensionsv1.ClusterScoped && spec.Scope != apiextensionsv1.NamespaceScoped, "scope",
			spec.Scope, "must be Cluster or Namespaced"},
		{spec.PreserveUnknownFields, "preserveUnknownFields", true, "must be false"},
		{spec.Conversion.Strategy != apiextensionsv1.NoneConverter, "conversion.strategy", spec.Conversion.Strategy,
			"there are no webhooks here: must be None"},
		{nStorage != 1, "versions", len(spec.Versions), "must have exactly one version marked as storage version"},
		{len(seen) != len(spec.Versions), "versions", len(spec.Versions), "must have different names"},
	} {
		if rule.broken {
			problems = append(problems, field.Invalid(path.Child(rule.path), rule.value, rule.text))
		}
	}
	return problems
}

func validateVersion(version *apiextensionsv1.CustomResourceDefinitionVersion, path *field.Path) field.ErrorList {
	problems := check(version.Name, validation.IsDNS1035Label, path.Child("name"))
	for i, column := range version.AdditionalPrinterColumns {
		if _, ok := parseJSONPath(column.JSONPath); !ok {
			problems = append(problems, field.Invalid(path.Child("additionalPrinterColumns").Index(i).Child("jsonPath"),
				column.JSONPath, "cannot be read"))
		}
	}
	path = path.Child("schema", "openAPIV3Schema")
	structural, err := structuralOf(version)
	if err != nil {
		return append(problems, field.Invalid(path, "", err.Error()))
	}
	return append(problems, structuralschema.ValidateStructural(path, structural)...)
}

// structuralOf returns the schema of a version. The error is that it has none, or one that says what can be neither
// pruned nor completed by.
func structuralOf(version *apiextensionsv1.CustomResourceDefinitionVersion) (*structuralschema.Structural, error) {
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return nil, errors.New("schemas are required")
	}
	props := &apiextensions.JSONSchemaProps{}
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		version.Schema.OpenAPIV3Schema.DeepCopy(), props, nil)
	if err != nil {
		return nil, err
	}
	return structuralschema.NewStructural(props)
}

// ValidateUpdate also keeps what the objects that there are have been made by.
func (s DefinitionStrategy) ValidateUpdate(obj, old runtime.Object) field.ErrorList {
	now, was := obj.(*apiextensionsv1.CustomResourceDefinition).Spec,
		old.(*apiextensionsv1.CustomResourceDefinition).Spec
	path := field.NewPath("spec")
	return slices.Concat(s.Validate(obj),
		apivalidation.ValidateImmutableField(now.Scope, was.Scope, path.Child("scope")),
		apivalidation.ValidateImmutableField(now.Names.Kind, was.Names.Kind, path.Child("names", "kind")))
}

// DefinitionWarnings names what a definition asks for in vain.
func DefinitionWarnings(definition *apiextensionsv1.CustomResourceDefinition) (warnings []error) {
	text, err := json.Marshal(definition.Spec)
	if err != nil {
		return []error{err}
	}
	for asked, warning := range map[string]string{
		`"x-kubernetes-validations":`: "x-kubernetes-validations are not evaluated here: there is no CEL",
		`"scale":{"specReplicasPath"`: "the subresource scale is not served here",
		`"selectableFields":`:         "selectableFields cannot be selected by here",
	} {
		if strings.Contains(string(text), asked) {
			warnings = append(warnings, errors.New(warning))
		}
	}
	return warnings
}

// HoldsContent holds a definition back until it says that it is being deleted: from then on its finalizer does.
func (DefinitionStrategy) HoldsContent(obj runtime.Object) bool {
	return obj.(metav1.Object).GetDeletionTimestamp() == nil
}

// MarkAsDeleting adds the finalizer that is removed when the objects of the kind are gone.
//
// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition/etcd.go: (*REST).Delete
func (DefinitionStrategy) MarkAsDeleting(obj runtime.Object) {
	accessor, finalizer := obj.(metav1.Object), apiextensionsv1.CustomResourceCleanupFinalizer
	if !slices.Contains(accessor.GetFinalizers(), finalizer) {
		accessor.SetFinalizers(append(accessor.GetFinalizers(), finalizer))
	}
}

// DefinitionColumns are those of definitions.
var DefinitionColumns = []Column{nameColumn, {"Created At", "When it was created.", false, func(r *Row) any {
	return r.Object.(metav1.Object).GetCreationTimestamp().UTC().Format(time.RFC3339)
}}}
