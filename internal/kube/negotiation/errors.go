package negotiation

import (
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NewNotAcceptable returns 406: the client accepts none of the types in have.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/errors.go: NewNotAcceptableError
func NewNotAcceptable(have []string) error {
	return Refusal(http.StatusNotAcceptable, "only the following media types are accepted: %s",
		strings.Join(have, ", "))
}

// NewUnsupportedMediaType returns 415: the body has none of the types in have.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/errors.go: NewUnsupportedMediaTypeError
func NewUnsupportedMediaType(have []string) error {
	return Refusal(http.StatusUnsupportedMediaType, "the body of the request was in an unknown format - accepted "+
		"media types include: %s", strings.Join(have, ", "))
}

// reasons has the reason of each code that [Refusal] may get.
var reasons = map[int]metav1.StatusReason{
	http.StatusBadRequest:            metav1.StatusReasonBadRequest,
	http.StatusForbidden:             metav1.StatusReasonForbidden,
	http.StatusNotFound:              metav1.StatusReasonNotFound,
	http.StatusMethodNotAllowed:      metav1.StatusReasonMethodNotAllowed,
	http.StatusNotAcceptable:         metav1.StatusReasonNotAcceptable,
	http.StatusGone:                  metav1.StatusReasonExpired,
	http.StatusRequestEntityTooLarge: metav1.StatusReasonRequestEntityTooLarge,
	http.StatusUnsupportedMediaType:  metav1.StatusReasonUnsupportedMediaType,
	http.StatusInternalServerError:   metav1.StatusReasonInternalError,
	http.StatusBadGateway:            metav1.StatusReasonServiceUnavailable,
	http.StatusServiceUnavailable:    metav1.StatusReasonServiceUnavailable,
}

// Refusal returns an error with a code, a kube-apiserver's reason for it, and a message.
func Refusal(code int, format string, args ...any) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: int32(code),
		Reason: reasons[code], Message: fmt.Sprintf(format, args...)}}
}
