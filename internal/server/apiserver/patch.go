package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/kube/negotiation"
	"listwatch/internal/kube/scheme"
)

// A small patch can cause much work. These constants limit that work.
//
// Differs: upstream limits only the operations and the size of copies; its work on elements and fields is quadratic.
const (
	maxJSONPatchOperations = 10000
	// maxPatchDepth is the maximum depth of a patch. The library parses the innermost value once for each level.
	maxPatchDepth = 100
	// maxPatchElements is the maximum number of elements in the lists of a strategic merge patch. For each element, the
	// library searches the stored list from the beginning.
	maxPatchElements = 2000
	// maxPatchedBytes is the maximum size of an object after each slice of a JSON patch: one body's maximum each for
	// the stored object, the patch's values, and copies.
	maxPatchedBytes = 3 * negotiation.MaxRequestBodyBytes
	// maxAppliedFields is the maximum number of fields and elements in an apply. Recording their managers takes
	// quadratic time.
	maxAppliedFields = 10000
	// patchSlice is the number of a JSON patch's operations between two checks of the size and of the request's end.
	patchSlice = 500
)

// init limits what a JSON patch can copy: each copy of an object into itself doubles it, and thirty fill any memory.
//
// Upstream: k8s.io/apiserver/pkg/server/config.go: NewConfig
func init() { jsonpatch.AccumulatedCopySizeLimit = negotiation.MaxRequestBodyBytes }

// patchTypes are the Content-Types of a PATCH. The last is server-side apply.
// Differs: upstream also has application/apply-patch+cbor.
var patchTypes = []string{
	string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType),
	string(types.ApplyYAMLPatchType),
}

// patch answers a PATCH of one object.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/patch.go: PatchResource
func patch(s *handlers.Scope, w http.ResponseWriter, r *http.Request) (obj runtime.Object, code int, err error) {
	patchType, err := patchTypeOf(r)
	if err != nil {
		return nil, 0, err
	}
	body, err := negotiation.ReadBody(w, r)
	if err != nil {
		return nil, 0, err
	}
	options := &metav1.PatchOptions{}
	if err := handlers.DecodeOptions(r, options); err != nil {
		return nil, 0, err
	}
	if problems := metav1validation.ValidatePatchOptions(options, patchType); len(problems) > 0 {
		return nil, 0, handlers.NewInvalidOptions("PatchOptions", problems)
	}
	p := &patcher{
		scope: s, patchType: patchType, patch: body, directive: options.FieldValidation,
		option: options.FieldManager, userAgent: r.UserAgent(), force: options.Force != nil && *options.Force,
	}
	p.namespace, p.name = s.NamespaceAndName(r)
	update := &metav1.UpdateOptions{DryRun: options.DryRun, FieldManager: options.FieldManager,
		FieldValidation: options.FieldValidation}
	applied := patchType == types.ApplyYAMLPatchType // only an apply may create the object
	obj, code, err = s.Update(r, p.UpdatedObject, applied, update)
	negotiation.AddWarnings(w, p.warnings)
	return obj, code, err
}

// patchTypeOf returns the type of the patch. The error is a 415.
func patchTypeOf(r *http.Request) (types.PatchType, error) {
	name, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || !slices.Contains(patchTypes, name) {
		return "", negotiation.NewUnsupportedMediaType(patchTypes)
	}
	return types.PatchType(name), nil
}

// patcher runs a PATCH. It makes the new object from the stored one, and again whenever another writer was faster, so a
// patch without a resource version does not fail because of a concurrent write, unless it is an apply and conflicts.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/patch.go: patcher
type patcher struct {
	// Set by patch, never changed.
	scope             *handlers.Scope
	namespace, name   string
	patchType         types.PatchType
	patch             []byte
	directive         string
	option, userAgent string // name the client for the field manager
	force             bool   // an apply takes fields from other managers

	// Set by each attempt.
	warnings []error
}

// UpdatedObject is the UpdatedObjectInfo of a PATCH. Errors: 400 for a malformed patch, or another name or namespace;
// 404 if there is no object to patch; 409 if an apply conflicts with managers, or has a uid and there is no object;
// 413 beyond a limit; 415 for an apply of a scale; 422 for a patch that does not fit the object; ctx's.
func (p *patcher) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	p.warnings = nil
	exists := old.(metav1.Object).GetResourceVersion() != ""
	var obj runtime.Object
	var err error
	switch {
	case p.patchType == types.ApplyYAMLPatchType:
		obj, err = p.applyWishes(old)
	case exists:
		obj, err = p.applyPatch(ctx, old)
	default:
		err = apierrors.NewNotFound(p.scope.Resource.GroupResource(), p.name)
	}
	if err != nil {
		return nil, err
	}
	if uid := obj.(metav1.Object).GetUID(); uid != "" && !exists {
		return nil, apierrors.NewConflict(p.scope.Resource.GroupResource(), p.name, fmt.Errorf("uid mismatch: the "+
			"provided object specified uid %s, and no existing object was found", uid))
	}
	p.warnings = append(p.warnings, handlers.DedupOwnerReferences(obj)...)
	return obj, handlers.CheckName(obj, p.name, p.namespace)
}

// applyPatch applies the patch to old's JSON, decodes the result, sets its defaults, and records the manager.
func (p *patcher) applyPatch(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	withType, err := scheme.WithKind(old)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	original, err := json.Marshal(withType)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	patched, err := p.apply(ctx, original)
	if err != nil {
		return nil, err
	}
	obj, err := p.decode(patched)
	if err != nil {
		return nil, err
	}
	p.scope.Resource.Strategy.Default(obj)
	return p.scope.Managed.Update(old, obj, p.option, p.userAgent), nil
}

// applyWishes runs a server-side apply: the patch is a part of an object, in YAML or JSON. old is empty if the object
// does not exist yet.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/patch.go: applyPatcher
func (p *patcher) applyWishes(old runtime.Object) (runtime.Object, error) {
	wishes := &unstructured.Unstructured{}
	if err := utilyaml.Unmarshal(p.patch, &wishes.Object); err != nil { // does not turn integers into floats
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	if wishes.Object == nil {
		return nil, apierrors.NewBadRequest("error decoding patch: it is empty")
	}
	if _, keys, elements := measure(wishes.Object); keys+elements > maxAppliedFields {
		return nil, newTooLarge("The allowed maximum of fields and elements in an apply is %d, got %d",
			maxAppliedFields, keys+elements)
	}
	fields, managed := p.scope.Managed.(*fieldManager)
	if !managed {
		return nil, negotiation.NewUnsupportedMediaType(patchTypes[:len(patchTypes)-1])
	}
	obj, err := fields.apply(old, wishes, managerName(p.option, p.userAgent), p.force)
	if err != nil {
		return nil, err
	}
	if p.directive != metav1.FieldValidationIgnore {
		err = yaml.UnmarshalStrict(p.patch, &map[string]any{})
	}
	if err != nil && p.directive == metav1.FieldValidationStrict {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error strict decoding patch: %v", err))
	}
	if err != nil {
		p.warnings = []error{err}
	}
	return obj, nil
}

// measure returns the depth of a value, the number of keys in its maps, and the number of elements in its lists.
func measure(value any) (depth, keys, elements int) {
	var inside []any
	switch value := value.(type) {
	case map[string]any:
		depth, keys, inside = 1, len(value), slices.Collect(maps.Values(value))
	case []any:
		depth, elements, inside = 1, len(value), value
	}
	for _, each := range inside {
		d, k, e := measure(each)
		depth, keys, elements = max(depth, 1+d), keys+k, elements+e
	}
	return depth, keys, elements
}

// newTooLarge returns a 413.
func newTooLarge(format string, args ...any) error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(format, args...))
}

// apply applies a JSON patch, a merge patch or a strategic merge patch to JSON. Errors: 400, 413, 422, or ctx's.
func (p *patcher) apply(ctx context.Context, original []byte) ([]byte, error) {
	if err := p.checkSize(); err != nil {
		return nil, err
	}
	switch p.patchType {
	case types.JSONPatchType:
		return p.applyJSONPatch(ctx, original)
	case types.MergePatchType:
		if !json.Valid(p.patch) {
			return nil, apierrors.NewBadRequest("error decoding patch: invalid JSON")
		}
		patched, err := jsonpatch.MergePatch(original, p.patch)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return patched, nil
	default:
		patched, err := strategicpatch.StrategicMergePatch(original, p.patch, p.scope.Storage.New())
		return patched, p.interpretStrategicMergePatchError(err)
	}
}

// checkSize returns a 413 for a patch that is nested too deep or, as a strategic merge, has too many elements. It
// accepts a malformed patch: the library that applies the patch returns the error.
func (p *patcher) checkSize() error {
	var patch any
	if json.Unmarshal(p.patch, &patch) != nil {
		return nil
	}
	depth, _, elements := measure(patch)
	if depth > maxPatchDepth {
		return newTooLarge("The allowed maximum depth of a patch is %d", maxPatchDepth)
	}
	if p.patchType == types.StrategicMergePatchType && elements > maxPatchElements {
		return newTooLarge("The allowed maximum of elements in the lists of a strategic merge patch is %d, got %d",
			maxPatchElements, elements)
	}
	return nil
}

// applyJSONPatch applies the operations in slices, so that the work stops soon after the end of the request.
func (p *patcher) applyJSONPatch(ctx context.Context, original []byte) ([]byte, error) {
	operations, err := jsonpatch.DecodePatch(p.patch)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if len(operations) > maxJSONPatchOperations {
		return nil, newTooLarge("The allowed maximum operations in a JSON patch is %d, got %d", maxJSONPatchOperations,
			len(operations))
	}
	patched := original
	for next := range slices.Chunk(operations, patchSlice) {
		if ctx.Err() != nil {
			return nil, ctx.Err() // toStatus adds the cause
		}
		if patched, err = next.Apply(patched); err != nil {
			return nil, newInvalidPatch(p.patch, err)
		}
		if len(patched) > maxPatchedBytes {
			return nil, newTooLarge("limit is %d", int64(maxPatchedBytes))
		}
	}
	return patched, nil
}

// malformed are the errors of a strategic merge patch that do not depend on the object.
var malformed = []error{mergepatch.ErrBadJSONDoc, mergepatch.ErrBadPatchFormatForPrimitiveList,
	mergepatch.ErrBadPatchFormatForRetainKeys, mergepatch.ErrBadPatchFormatForSetElementOrderList,
	mergepatch.ErrUnsupportedStrategicMergePatchFormat}

// interpretStrategicMergePatchError returns nil for nil, a 400 for a malformed patch, and a 422 for any other error.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/patch.go: interpretStrategicMergePatchError
// Differs: a patch that does not fit the object is a 422; upstream's is a 500.
func (p *patcher) interpretStrategicMergePatchError(err error) error {
	is := func(known error) bool { return errors.Is(err, known) }
	switch {
	case err == nil:
		return nil
	case slices.ContainsFunc(malformed, is):
		return apierrors.NewBadRequest(err.Error())
	default:
		return newInvalidPatch(p.patch, err)
	}
}

// decode decodes the patched JSON. As in upstream, a value of a wrong type and, under Strict, an unknown field are a
// 422: the patch itself was well-formed.
func (p *patcher) decode(patched []byte) (runtime.Object, error) {
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), negotiation.JSON)
	gvk := p.scope.Kind
	obj, _, warnings, err := negotiation.DecodeObject(info, patched, gvk, p.scope.Storage.New(), p.directive)
	if err != nil {
		return nil, newInvalidPatch(p.patch, err)
	}
	p.warnings = warnings
	return scheme.ClearKind(obj), nil
}

// shownPatch is the maximum number of bytes of a patch that an error quotes.
const shownPatch = 200

// newInvalidPatch returns a 422 for a well-formed patch whose result is invalid.
//
// Differs: it quotes the patch; upstream quotes the whole result or, for a JSON patch, nothing.
func newInvalidPatch(patch []byte, problem error) error {
	quoted := string(patch[:min(len(patch), shownPatch)])
	problems := field.ErrorList{field.Invalid(field.NewPath("patch"), quoted, problem.Error())}
	return apierrors.NewInvalid(schema.GroupKind{}, "", problems)
}
