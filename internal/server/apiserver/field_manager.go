package apiserver

import (
	"bytes"
	_ "embed" // embeds the field types
	"encoding/gob"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	registry "listwatch/chapters/07-registry"
	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/kube/scheme"
)

// fieldManager records each write in metadata.managedFields: the client is the manager of the fields that it has set.
// An apply contains only the fields that its client wants to manage. It removes fields that the client's last apply
// contained and this one lacks, unless another manager has them. A field to which another manager has given a different
// value is a conflict. All other fields stay.
//
// The library structured-merge-diff implements the rules; this file supplies the types.
//
// Upstream: k8s.io/apimachinery/pkg/util/managedfields/fieldmanager.go: FieldManager
// Differs: the time of an entry is wall time, because the library accepts no clock; all other times of objects
// come from the server's clock.
type fieldManager struct{ manager *managedfields.FieldManager }

// newFieldManager returns the field manager of one path; for a scale, one that records nothing.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/installer.go: (*APIInstaller).registerResourceHandlers
func newFieldManager(s *handlers.Scope) handlers.FieldManager {
	if s.Subresource == "scale" {
		return unmanaged{}
	}
	objects := objectConverter{scheme.Scheme, s.Resource.Strategy.Default}
	manager, err := managedfields.NewDefaultFieldManager(
		typeConverter(), objects, objects, objects,
		s.Kind, s.Kind.GroupVersion(), s.Subresource, resetFields(s.Resource, s.Subresource))
	if err != nil {
		panic(fmt.Sprintf("apiserver: field manager of %s: %v", s.Resource.Name, err))
	}
	return &fieldManager{manager}
}

// unmanaged is the field manager of scales, which have no managed fields.
type unmanaged struct{}

func (unmanaged) Update(_, obj runtime.Object, _, _ string) runtime.Object { return obj }

// resetFields returns a filter that excludes the fields that a write to this path cannot change; nil: there are none.
func resetFields(resource *registry.Resource, subresource string) map[fieldpath.APIVersion]fieldpath.Filter {
	var reset *fieldpath.Set
	switch {
	case subresource == "status":
		reset = fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))
	case resource.StatusStrategy != nil:
		reset = fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	default:
		return nil
	}
	return map[fieldpath.APIVersion]fieldpath.Filter{
		fieldpath.APIVersion(resource.GroupVersion.String()): fieldpath.NewExcludeSetFilter(reset),
	}
}

// Update records the differences between live and obj in obj's managed fields, under the client's name. If the library
// fails, as for a list element without its key, or live or obj has too many fields, obj gets live's managed fields.
//
// Upstream: k8s.io/apimachinery/pkg/util/managedfields/internal/fieldmanager.go: (*FieldManager).UpdateNoErrors
// Differs: upstream logs such an error, with [SHOULD NOT HAPPEN], and has no limit.
func (f *fieldManager) Update(live, obj runtime.Object, option, userAgent string) runtime.Object {
	if !hasTooManyFields(live) && !hasTooManyFields(obj) {
		if noted, err := f.manager.Update(live, obj, managerName(option, userAgent)); err == nil {
			return scheme.ClearKind(noted)
		}
	}
	obj.(metav1.Object).SetManagedFields(live.(metav1.Object).GetManagedFields())
	return scheme.ClearKind(obj)
}

// maxNotedFields is the maximum number of fields and elements of an object whose writes are recorded, because recording
// a write takes quadratic time.
const maxNotedFields = 20000

var errTooManyFields = newTooLarge("The allowed maximum of fields and elements of an object whose fields are to be "+
	"noted is %d", maxNotedFields)

// hasTooManyFields reports whether obj exceeds maxNotedFields. A small obj cannot: an element has at least two bytes.
func hasTooManyFields(obj runtime.Object) bool {
	sized, ok := obj.(interface{ Size() int })
	return ok && sized.Size() > 2*maxNotedFields && countFields(reflect.ValueOf(obj)) > maxNotedFields
}

// countFields returns the number of elements and keys in the lists and maps of v. A []byte has none.
func countFields(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return countFields(v.Elem())
	case reflect.Struct:
		for _, field := range v.Fields() {
			n += countFields(field)
		}
	case reflect.Map:
		n = v.Len()
		for _, value := range v.Seq2() {
			n += countFields(value)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return 0
		}
		n = v.Len()
		for i := range n {
			n += countFields(v.Index(i))
		}
	}
	return n
}

// apply merges a manager's applied configuration into live. Errors: 400 if it is invalid; 409, unless forced, with a
// cause for each field to which another manager has given a different value; 413 if live has too many fields.
//
// Differs: an unknown field is a 400; upstream's is a 500.
func (f *fieldManager) apply(live runtime.Object, wishes *unstructured.Unstructured, who string,
	force bool) (runtime.Object, error) {
	if hasTooManyFields(live) {
		return nil, errTooManyFields
	}
	obj, err := f.manager.Apply(live, wishes, who, force)
	var known apierrors.APIStatus
	switch {
	case err == nil:
		return scheme.ClearKind(obj), nil
	case errors.As(err, &known):
		return nil, err
	default:
		return nil, apierrors.NewBadRequest(err.Error())
	}
}

// objectConverter adapts the scheme to the library, with the defaults of one kind.
type objectConverter struct {
	*runtime.Scheme
	setDefault func(runtime.Object)
}

func (c objectConverter) Default(obj runtime.Object) { c.setDefault(obj) }

// fieldTypes has the type of each field of each kind, such as a struct, a map, or a list whose items have keys. The
// type determines which managers may share a field. internal/check/compat/kubectl writes the file from client-go's
// types for apply configurations. Reading it as gob takes a millisecond; client-go's YAML takes a browser 0.3 s.
//
//go:embed field_types.gob.gz
var fieldTypes []byte

// typeConverter reads fieldTypes, once for all servers of the process.
//
// Differs: upstream reads the types from the OpenAPI documents that it serves; ours come from client-go.
var typeConverter = sync.OnceValue(func() managedfields.TypeConverter {
	gob.Register(map[any]any{}) // the type of a struct's defaults in the schema
	parser := &typed.Parser{}
	if err := gob.NewDecoder(bytes.NewReader(gunzip(fieldTypes))).Decode(&parser.Schema); err != nil {
		panic(fmt.Sprintf("apiserver: embedded field types: %v", err))
	}
	return managedfields.NewSchemeTypeConverter(scheme.Scheme, parser)
})

// managerName returns the option, or else the printable characters of the user agent up to a slash or the limit.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/create.go: managerOrUserAgent
func managerName(option, userAgent string) string {
	if option != "" {
		return option
	}
	product, _, _ := strings.Cut(userAgent, "/")
	var name strings.Builder
	for _, r := range product {
		if !unicode.IsPrint(r) {
			continue
		}
		if name.Len()+utf8.RuneLen(r) > validation.FieldManagerMaxLength {
			break
		}
		name.WriteRune(r)
	}
	return name.String()
}
