package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"sigs.k8s.io/yaml"

	"listwatch/internal/scheme"
)

// maxJSONPatchOperations bounds the work one small request can ask for.
const maxJSONPatchOperations = 10000

// patchTypes are the Content-Types of a PATCH. The last is server-side apply.
// Differs: no application/apply-patch+cbor.
var patchTypes = []string{
	string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType), string(types.ApplyYAMLPatchType),
}

// PatchResource answers PATCH of one object.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/patch.go: PatchResource
func (s *scope) PatchResource(w http.ResponseWriter, r *http.Request) {
	output, err := negotiateOutput(r)
	if err != nil {
		writeError(w, r, err)
		return
	}
	obj, created, err := s.patch(w, r)
	if err != nil {
		writeError(w, r, err)
		return
	}
	code := http.StatusOK
	if created {
		code = http.StatusCreated
	}
	transformResponseObject(w, r, s, code, output, obj)
}

func (s *scope) patch(w http.ResponseWriter, r *http.Request) (obj runtime.Object, created bool, err error) {
	patchType, err := patchTypeOf(r)
	if err != nil {
		return nil, false, err
	}
	body, err := readBody(w, r)
	if err != nil {
		return nil, false, err
	}
	options := &metav1.PatchOptions{}
	if err := decodeOptions(r, options); err != nil {
		return nil, false, err
	}
	if problems := metav1validation.ValidatePatchOptions(options, patchType); len(problems) > 0 {
		return nil, false, newInvalidOptions("PatchOptions", problems)
	}
	p := &patcher{scope: s, patchType: patchType, patch: body, directive: validationDirective(options.FieldValidation)}
	p.manager, p.force = managerName(options.FieldManager, r.UserAgent()), options.Force != nil && *options.Force
	p.namespace, p.name = s.namespaceAndName(r)
	update := &metav1.UpdateOptions{DryRun: options.DryRun, FieldManager: options.FieldManager, FieldValidation: options.FieldValidation}
	obj, created, err = s.storage.(Updater).Update(r.Context(), p.namespace, p.name, p, update)
	addWarnings(w, p.warnings)
	return obj, created, err
}

// patchTypeOf returns how the patch is written. The error is 415.
func patchTypeOf(r *http.Request) (types.PatchType, error) {
	name, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil {
		for _, known := range patchTypes {
			if name == known {
				return types.PatchType(name), nil
			}
		}
	}
	return "", newUnsupportedMediaType(patchTypes)
}

// patcher is the UpdatedObjectInfo of a PATCH: it makes the new object out of the stored one, again each time somebody
// else was faster. That is why a patch without a resource version never conflicts.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/patch.go: patcher
type patcher struct {
	// Set by patch, never changed.
	scope           *scope
	namespace, name string
	patchType       types.PatchType
	patch           []byte
	directive       string
	manager         string // who patches
	force           bool   // an apply takes fields over from others

	// Of the last attempt.
	warnings []error
}

func (p *patcher) Preconditions() *metav1.Preconditions { return nil }

// UpdatedObject applies the patch to old as JSON, and reads the result back as an object. Errors: 400 for a patch that
// does not parse, 404 if there is nothing to patch, 413, and 422 for one that cannot be applied.
func (p *patcher) UpdatedObject(_ context.Context, old runtime.Object) (runtime.Object, error) {
	p.warnings = nil
	if p.patchType == types.ApplyYAMLPatchType {
		return p.applyWishes(old)
	}
	accessor, err := meta.Accessor(old)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if accessor.GetResourceVersion() == "" {
		return nil, apierrors.NewNotFound(p.scope.resource.GroupResource(), p.name)
	}
	withType, err := withKind(old)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	original, err := json.Marshal(withType)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	patched, err := p.apply(original)
	if err != nil {
		return nil, err
	}
	obj, err := p.decode(patched)
	if err != nil {
		return nil, err
	}
	p.scope.resource.Default(obj)
	obj = p.scope.managed.update(old, obj, p.manager)
	return obj, checkName(obj, p.name, p.namespace)
}

// AllowsCreate reports whether the object need not exist: to apply is to say what there is to be.
func (p *patcher) AllowsCreate() bool { return p.patchType == types.ApplyYAMLPatchType }

// applyWishes is server-side apply: the patch is a part of an object, in YAML, of which JSON is a case. old is empty if
// there is none yet. Errors: 400, 409.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/patch.go: applyPatcher
func (p *patcher) applyWishes(old runtime.Object) (runtime.Object, error) {
	wishes := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(p.patch, &wishes.Object); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	if wishes.Object == nil {
		return nil, apierrors.NewBadRequest("error decoding patch: it is empty")
	}
	obj, err := p.scope.managed.apply(old, wishes, p.manager, p.force)
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
	return obj, checkName(obj, p.name, p.namespace)
}

// apply applies the patch to an object's JSON.
func (p *patcher) apply(original []byte) ([]byte, error) {
	switch p.patchType {
	case types.JSONPatchType:
		return p.applyJSONPatch(original)
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
		patched, err := strategicpatch.StrategicMergePatch(original, p.patch, p.scope.storage.New())
		return patched, p.interpretStrategicMergePatchError(err)
	}
}

func (p *patcher) applyJSONPatch(original []byte) ([]byte, error) {
	operations, err := jsonpatch.DecodePatch(p.patch)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if len(operations) > maxJSONPatchOperations {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("The allowed maximum operations in a JSON patch is %d, got %d", maxJSONPatchOperations, len(operations)))
	}
	patched, err := operations.Apply(original)
	if err != nil {
		return nil, newInvalidPatch(p.patch, err)
	}
	return patched, nil
}

// interpretStrategicMergePatchError gives each error its status.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/patch.go: interpretStrategicMergePatchError
// Differs: what upstream lets become a 500, a patch that does not fit the object, is a 422.
func (p *patcher) interpretStrategicMergePatchError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, mergepatch.ErrBadJSONDoc), errors.Is(err, mergepatch.ErrBadPatchFormatForPrimitiveList),
		errors.Is(err, mergepatch.ErrBadPatchFormatForRetainKeys), errors.Is(err, mergepatch.ErrBadPatchFormatForSetElementOrderList),
		errors.Is(err, mergepatch.ErrUnsupportedStrategicMergePatchFormat):
		return apierrors.NewBadRequest(err.Error())
	default:
		return newInvalidPatch(p.patch, err)
	}
}

// decode reads the patched JSON. A value of a wrong type, or a field that there is not, is 422, as upstream has it: the patch
// was well-formed.
func (p *patcher) decode(patched []byte) (runtime.Object, error) {
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mediaTypeJSON)
	serializer := info.Serializer
	if p.directive != metav1.FieldValidationIgnore {
		serializer = info.StrictSerializer
	}
	gvk := p.scope.kind
	decoder := scheme.Codecs.DecoderToVersion(serializer, gvk.GroupVersion())
	obj, _, err := decoder.Decode(patched, &gvk, p.scope.storage.New())
	if strict, ok := runtime.AsStrictDecodingError(err); ok && obj != nil {
		if p.directive == metav1.FieldValidationStrict {
			return nil, newInvalidPatch(p.patch, err)
		}
		p.warnings = strict.Errors()
		err = nil
	}
	if err != nil {
		return nil, newInvalidPatch(p.patch, err)
	}
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return obj, nil
}
