package negotiation

import (
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NewNotAcceptable: the client accepts none of the types we have. 406.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/errors.go: NewNotAcceptableError
func NewNotAcceptable(have []string) error {
	return NewStatusError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"only the following media types are accepted: "+strings.Join(have, ", "))
}

// NewUnsupportedMediaType: the body is in a form we do not read. 415.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/errors.go: NewUnsupportedMediaTypeError
func NewUnsupportedMediaType(have []string) error {
	return NewStatusError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		"the body of the request was in an unknown format - accepted media types include: "+strings.Join(have, ", "))
}

// NewStatusError returns a failure with a code, a reason and a message.
func NewStatusError(code int32, reason metav1.StatusReason, message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}}
}

// reasons are those of the statuses that [Refusal] is asked for.
var reasons = map[int]metav1.StatusReason{
	http.StatusBadRequest:            metav1.StatusReasonBadRequest,
	http.StatusForbidden:             metav1.StatusReasonForbidden,
	http.StatusNotFound:              metav1.StatusReasonNotFound,
	http.StatusMethodNotAllowed:      metav1.StatusReasonMethodNotAllowed,
	http.StatusGone:                  metav1.StatusReasonExpired,
	http.StatusRequestEntityTooLarge: metav1.StatusReasonRequestEntityTooLarge,
	http.StatusUnsupportedMediaType:  metav1.StatusReasonUnsupportedMediaType,
	http.StatusInternalServerError:   metav1.StatusReasonInternalError,
	http.StatusBadGateway:            metav1.StatusReasonServiceUnavailable,
	http.StatusServiceUnavailable:    metav1.StatusReasonServiceUnavailable,
}

// Refusal returns a failure with a code, the reason that a kube-apiserver gives with it, and a message.
func Refusal(code int, format string, args ...any) error {
	return NewStatusError(int32(code), reasons[code], fmt.Sprintf(format, args...))
}
