package handlers

import (
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"

	"listwatch/internal/kube/negotiation"
)

// DecodeOptions reads options from the query. The error is 400.
func DecodeOptions(r *http.Request, into runtime.Object) error {
	err := metainternalversionscheme.ParameterCodec.DecodeParameters(r.URL.Query(), metav1.SchemeGroupVersion, into)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// readObject reads the object in a POST or PUT, and the options in its query, which are the same for both. kind is the
// kind of the options in errors. Errors: 400, 413, 415, 422.
func (s *Scope) readObject(w http.ResponseWriter, r *http.Request,
	kind string) (runtime.Object, *metav1.CreateOptions, error) {
	body, err := negotiation.ReadObject(w, r)
	if err != nil {
		return nil, nil, err
	}
	options := &metav1.CreateOptions{}
	if err := DecodeOptions(r, options); err != nil {
		return nil, nil, err
	}
	if problems := metav1validation.ValidateCreateOptions(options); len(problems) > 0 {
		return nil, nil, NewInvalidOptions(kind, problems)
	}
	obj, err := body.Decode(w, s.Kind, s.Storage.New(), options.FieldValidation)
	if err != nil {
		return nil, nil, err
	}
	negotiation.AddWarnings(w, DedupOwnerReferences(obj))
	return obj, options, nil
}

// DedupOwnerReferences keeps equal owner references of obj once, and returns a warning if there were any.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/rest.go: dedupOwnerReferencesAndAddWarning
// Differs: a map finds equal entries; upstream compares each with all others of its uid. Upstream's warning about a
// PATCH also mentions admission.
func DedupOwnerReferences(obj runtime.Object) (warnings []error) {
	accessor := obj.(metav1.Object)
	seen := map[string]bool{} // by encoding
	var kept []metav1.OwnerReference
	var doubled []string
	for _, ref := range accessor.GetOwnerReferences() {
		encoded, _ := ref.Marshal() // has no error to return
		if seen[string(encoded)] {
			doubled = append(doubled, string(ref.UID))
			continue
		}
		seen[string(encoded)] = true
		kept = append(kept, ref)
	}
	if len(doubled) == 0 {
		return nil
	}
	accessor.SetOwnerReferences(kept)
	return []error{fmt.Errorf(".metadata.ownerReferences contains duplicate entries; API server dedups owner "+
		"references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate "+
		"UID(s) observed: %s", strings.Join(doubled, ", "))}
}

// CheckName returns 400 for an object whose name or namespace is not that of the URL.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/rest.go: checkName
func CheckName(obj runtime.Object, name, namespace string) error {
	accessor := obj.(metav1.Object) // every stored kind is one
	if accessor.GetName() == "" {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: "+
			"name must be provided", name))
	}
	if accessor.GetName() != name {
		return apierrors.NewBadRequest(fmt.Sprintf(
			"the name of the object (%s) does not match the name on the URL (%s)", accessor.GetName(), name))
	}
	if namespace != "" && accessor.GetNamespace() != "" && accessor.GetNamespace() != namespace {
		return apierrors.NewBadRequest(fmt.Sprintf("the namespace of the object (%s) does not match the namespace on "+
			"the request (%s)", accessor.GetNamespace(), namespace))
	}
	return nil
}
