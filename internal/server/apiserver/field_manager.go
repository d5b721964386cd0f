package apiserver

import (
	"bytes"
	_ "embed" // for the field types
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

// fieldManager keeps, in metadata.managedFields of each object, which client has last decided which of its fields.
// Each write is noted there. A client that applies sends only the fields that it decides. Fields that it decided
// earlier and no longer sends are removed; a field that another client decided differently is a conflict; others stay.
//
// The library structured-merge-diff has the rules; this file supplies the types.
//
// Upstream: k8s.io/apimachinery/pkg/util/managedfields/fieldmanager.go: FieldManager
// Differs: the time of an entry is the wall clock's, where all other times here are the world's: the library takes no
// clock.
type fieldManager struct{ manager *managedfields.FieldManager }

// newFieldManager returns the field manager of one path.
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

// unmanaged is for objects without managed fields.
type unmanaged struct{}

// Update returns obj.
func (unmanaged) Update(_, obj runtime.Object, _, _ string) runtime.Object { return obj }

// resetFields are the fields that a write to this path cannot change, so that no manager comes to own them by it.
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

// Update notes in obj what it changes compared with live, under the name of the client. If that is impossible, because
// an element of a list lacks its key, or would take too long, obj keeps the notes of live.
//
// Upstream: k8s.io/apimachinery/pkg/util/managedfields/internal/fieldmanager.go: (*FieldManager).UpdateNoErrors
// Differs: upstream also logs it, with [SHOULD NOT HAPPEN], and has no bound.
func (f *fieldManager) Update(live, obj runtime.Object, option, userAgent string) runtime.Object {
	err := errTooManyFields
	if !hasTooManyFields(live) && !hasTooManyFields(obj) {
		var noted runtime.Object
		if noted, err = f.manager.Update(live, obj, managerName(option, userAgent)); err == nil {
			return scheme.ClearKind(noted)
		}
	}
	obj.(metav1.Object).SetManagedFields(live.(metav1.Object).GetManagedFields())
	return scheme.ClearKind(obj)
}

// maxNotedFields is how many fields and elements an object may have whose owners are noted: it takes quadratic time.
const maxNotedFields = 20000

var errTooManyFields = newTooLarge("The allowed maximum of fields and elements of an object whose fields are to be "+
	"noted is %d", maxNotedFields)

// hasTooManyFields counts only what is large enough: as protobuf, an element takes two bytes at least.
func hasTooManyFields(obj runtime.Object) bool {
	sized, ok := obj.(interface{ Size() int })
	return ok && sized.Size() > 2*maxNotedFields && countFields(reflect.ValueOf(obj)) > maxNotedFields
}

// countFields returns how many elements and keys the lists and maps in v have.
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

// apply returns live with the wishes of who put into it. Errors: 400 for wishes that make no sense, 409 with a cause
// for each field that another manager has decided otherwise, unless forced, 413 if live has too many fields.
//
// Differs: a field that the kind does not have is a 400; upstream lets it become a 500.
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

// objectConverter is the scheme as the library wants it, with the defaults of one kind.
type objectConverter struct {
	*runtime.Scheme
	setDefault func(runtime.Object)
}

// Default implements [runtime.ObjectDefaulter].
func (c objectConverter) Default(obj runtime.Object) { c.setDefault(obj) }

// fieldTypes says of each field of each kind whether it is a struct, a map, a list whose items have keys, or one value:
// who may share it with whom. It is data made from what client-go knows for its apply configurations;
// internal/check/compat/kubectl writes it.
// As gob they are read within a millisecond: the YAML that client-go has them in takes a browser's tab 0.3 s.
//
//go:embed field_types.gob.gz
var fieldTypes []byte

// typeConverter reads fieldTypes, once for all servers of the process.
//
// Differs: upstream reads the same from the OpenAPI document that it serves; ours is too old to know every field.
var typeConverter = sync.OnceValue(func() managedfields.TypeConverter {
	gob.Register(map[any]any{}) // the default of a field that is a struct
	parser := &typed.Parser{}
	if err := gob.NewDecoder(bytes.NewReader(gunzip(fieldTypes))).Decode(&parser.Schema); err != nil {
		panic(fmt.Sprintf("apiserver: embedded field types: %v", err))
	}
	return managedfields.NewSchemeTypeConverter(scheme.Scheme, parser)
})

// managerName returns the manager's name: the option, or the first word of the user agent.
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
