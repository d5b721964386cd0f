package resources

import (
	"fmt"
	"io"
	"maps"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	openapierrors "k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// CustomStrategy is for the objects of one version of a kind that a definition describes: its schema says which fields
// there are, how they are completed, and what is wrong with them.
//
// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresource/strategy.go: customResourceStrategy
// Differs: no rules in CEL; no ratcheting: an update must mend what a stricter schema finds wrong with the old object.
// The metadata of embedded resources are neither pruned nor checked.
type CustomStrategy struct {
	structural *structuralschema.Structural
	validator  *validate.SchemaValidator
	kind       schema.GroupVersionKind
	stored     string // the apiVersion in which objects are stored
	HasStatus  bool   // the status has a path of its own
}

// NewCustomStrategy returns the strategy of a version of a definition that has passed [DefinitionStrategy.Validate].
func NewCustomStrategy(definition *apiextensionsv1.CustomResourceDefinition,
	version *apiextensionsv1.CustomResourceDefinitionVersion) (*CustomStrategy, error) {
	structural, err := structuralOf(version)
	if err != nil {
		return nil, fmt.Errorf("schema of %s %s: %w", definition.Name, version.Name, err)
	}
	stored, err := apihelpers.GetCRDStorageVersion(definition)
	return &CustomStrategy{
		structural: structural,
		validator:  validate.NewSchemaValidator(structural.Unfold().ToKubeOpenAPI(), nil, "", strfmt.Default),
		kind: schema.GroupVersionKind{
			Group: definition.Spec.Group, Version: version.Name, Kind: definition.Spec.Names.Kind},
		stored:    definition.Spec.Group + "/" + stored,
		HasStatus: version.Subresources != nil && version.Subresources.Status != nil,
	}, err
}

// Schema returns the schema as OpenAPI says it.
func (s *CustomStrategy) Schema() *spec.Schema { return s.structural.ToKubeOpenAPI() }

// Prune takes out of obj what the schema does not know, and returns an error for each field.
func (s *CustomStrategy) Prune(obj runtime.Object) (unknown []error) {
	options := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	read, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil // another kind, which is refused
	}
	for _, path := range pruning.PruneWithOptions(read.Object, s.structural, true, options) {
		unknown = append(unknown, fmt.Errorf("unknown field %q", path))
	}
	return unknown
}

// Default fills in the defaults of the schema.
func (s *CustomStrategy) Default(obj runtime.Object) {
	complete(obj.(*unstructured.Unstructured).Object, s.structural)
}

// complete gives the fields of a value their defaults. A null where there may be none is replaced by the default, or
// taken away.
//
// Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting/algorithm.go: Default
func complete(value any, s *structuralschema.Structural) {
	if s == nil {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for name, property := range s.Properties {
			if now, ok := value[name]; property.Default.Object != nil && (!ok || now == nil && !property.Nullable) {
				value[name] = runtime.DeepCopyJSONValue(property.Default.Object)
			}
		}
		for name, each := range value {
			property, ok := s.Properties[name]
			if !ok {
				if s.AdditionalProperties == nil || s.AdditionalProperties.Structural == nil {
					continue
				}
				property = *s.AdditionalProperties.Structural
			}
			if each == nil && !property.Nullable {
				delete(value, name)
			}
			complete(each, &property)
		}
	case []any:
		for i := range value {
			if value[i] == nil && s.Items != nil && !s.Items.Nullable {
				value[i] = runtime.DeepCopyJSONValue(s.Items.Default.Object)
			}
			complete(value[i], s.Items)
		}
	}
}

// PrepareForCreate takes the status away if it has a path of its own.
func (s *CustomStrategy) PrepareForCreate(obj runtime.Object) {
	if s.HasStatus {
		setPart(obj, nil, "Status")
	}
	obj.(metav1.Object).SetGeneration(1)
}

// PrepareForUpdate keeps the status if it has a path of its own. Any other change is a new generation.
func (s *CustomStrategy) PrepareForUpdate(obj, old runtime.Object) {
	if s.HasStatus {
		setPart(obj, old, "Status")
	}
	if !equality.Semantic.DeepEqual(content(obj), content(old)) {
		accessor := obj.(metav1.Object)
		accessor.SetGeneration(accessor.GetGeneration() + 1)
	}
}

// content is an object without its metadata.
func content(obj runtime.Object) map[string]any {
	fields := maps.Clone(obj.(*unstructured.Unstructured).Object)
	delete(fields, "metadata")
	return fields
}

// Validate checks obj by the schema.
//
// Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/validation/validation.go: kubeOpenAPIResultToFieldErrors
func (s *CustomStrategy) Validate(obj runtime.Object) (problems field.ErrorList) {
	fields := obj.(*unstructured.Unstructured).Object
	for _, err := range s.validator.Validate(fields).Errors {
		problems = append(problems, fieldError(err))
	}
	return append(problems, listtype.ValidateListSetsAndMaps(nil, s.structural, fields)...)
}

// fieldError puts a problem of the library into the words of all others.
func fieldError(err error) *field.Error {
	var path *field.Path
	problem, ok := err.(*openapierrors.Validation)
	if !ok {
		return field.Invalid(path, "", err.Error())
	}
	if name := strings.TrimPrefix(problem.Name, "."); name != "" {
		path = field.NewPath(name)
	}
	switch problem.Code() {
	case openapierrors.RequiredFailCode:
		return field.Required(path, "")
	case openapierrors.InvalidTypeCode:
		return field.TypeInvalid(path, problem.Value, problem.Error())
	case openapierrors.EnumFailCode:
		var allowed []string
		for _, each := range problem.Values {
			allowed = append(allowed, fmt.Sprint(each))
		}
		return field.NotSupported(path, problem.Value, allowed)
	}
	return field.Invalid(path, problem.Value, problem.Error())
}

// ValidateUpdate is Validate.
func (s *CustomStrategy) ValidateUpdate(obj, _ runtime.Object) field.ErrorList {
	return s.Validate(obj)
}

// CustomStatusStrategy is for the status of such objects.
type CustomStatusStrategy struct{ *CustomStrategy }

// PrepareForUpdate keeps everything but the status, and who has set it.
func (CustomStatusStrategy) PrepareForUpdate(obj, old runtime.Object) {
	kept, changed := old.DeepCopyObject().(*unstructured.Unstructured), obj.(*unstructured.Unstructured)
	setPart(kept, changed, "Status")
	kept.SetManagedFields(changed.GetManagedFields())
	kept.SetResourceVersion(changed.GetResourceVersion())
	changed.Object = kept.Object
}

// Codec returns codec with what the versions of a kind differ in. An object is written in the version that is stored.
// One that is read comes in the version of the strategy, whatever it was written in, and as the schema of today has it.
//
// Upstream: k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/nop_converter.go: nopConverter
func (s *CustomStrategy) Codec(codec runtime.Codec) runtime.Codec { return &customCodec{codec, s} }

type customCodec struct {
	runtime.Codec
	strategy *CustomStrategy
}

// Encode writes obj without changing it.
func (c *customCodec) Encode(obj runtime.Object, w io.Writer) error {
	fields := maps.Clone(obj.(*unstructured.Unstructured).Object)
	fields["apiVersion"] = c.strategy.stored
	return c.Codec.Encode(&unstructured.Unstructured{Object: fields}, w)
}

// Decode reads an object.
func (c *customCodec) Decode(data []byte, defaults *schema.GroupVersionKind,
	into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, kind, err := c.Codec.Decode(data, defaults, into)
	if read, ok := obj.(*unstructured.Unstructured); ok && err == nil {
		read.SetGroupVersionKind(c.strategy.kind)
		c.strategy.Prune(read)
		c.strategy.Default(read)
	}
	return obj, kind, err
}
