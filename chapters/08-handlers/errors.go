package handlers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func newStatusError(code int32, reason metav1.StatusReason, message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}}
}

// newNotAcceptable: the client accepts none of the types we have. 406.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/errors.go: NewNotAcceptableError
func newNotAcceptable(have []string) error {
	return newStatusError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"only the following media types are accepted: "+strings.Join(have, ", "))
}

// newUnsupportedMediaType: the body is in a form we do not read. 415.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/negotiation/errors.go: NewUnsupportedMediaTypeError
func newUnsupportedMediaType(have []string) error {
	return newStatusError(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		"the body of the request was in an unknown format - accepted media types include: "+strings.Join(have, ", "))
}

// shownPatch is how much of a patch its refusal quotes.
const shownPatch = 200

// newInvalidPatch: the patch is well-formed, and does not lead from the object that is there to one that could be. 422.
//
// Differs: quotes the patch; upstream quotes the whole object that it led to or, of a JSON patch, does not say what is wrong.
func newInvalidPatch(patch []byte, problem error) error {
	quoted := string(patch[:min(len(patch), shownPatch)])
	problems := field.ErrorList{field.Invalid(field.NewPath("patch"), quoted, problem.Error())}
	return apierrors.NewInvalid(schema.GroupKind{}, "", problems)
}

func newInvalidOptions(kind string, problems field.ErrorList) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", problems)
}

// errRequestTimeout is the cause with which a request's context ends when its time is over.
var errRequestTimeout = errors.New("request timeout")

// toStatus returns what a client is told about err, code and all. An error that nobody thought of is a 500 with the
// reason left empty.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/status.go: ErrorToAPIStatus
func toStatus(ctx context.Context, err error) *metav1.Status {
	var known apierrors.APIStatus
	var status metav1.Status
	switch {
	case errors.As(err, &known):
		status = known.Status()
	case errors.Is(context.Cause(ctx), errRequestTimeout):
		status = apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0).ErrStatus
	default:
		status = metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}
	}
	if status.Status == "" {
		status.Status = metav1.StatusFailure
	}
	if status.Code == 0 {
		status.Code = http.StatusInternalServerError
		if status.Status == metav1.StatusSuccess {
			status.Code = http.StatusOK
		}
	}
	status.Kind, status.APIVersion = "Status", "v1"
	return &status
}

// writeError answers with err as a Status, in the form that the client accepts, or as JSON if it accepts none: a
// client that cannot read the answer still sees its code.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go: ErrorNegotiated
func writeError(w http.ResponseWriter, r *http.Request, err error) {
	status := toStatus(r.Context(), err)
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	if errors.Is(context.Cause(r.Context()), errRequestTimeout) {
		w.Header().Set("Connection", "close") // see [server.withDeadline]
	}
	output, negotiateErr := negotiateOutput(r)
	if negotiateErr != nil {
		output = mediaType{name: mediaTypeJSON, encoder: encoderFor(mediaTypeJSON, false)}
	}
	writeObject(w, r, int(status.Code), output, status)
}

// notFound answers where there is no path. It says what there is: this server is smaller than clients are used to.
//
// Upstream: k8s.io/apiserver/pkg/server/handler.go: director.ServeHTTP
// Differs: upstream says "404 page not found", from which clients make the first half of our message.
func (s *server) notFound(w http.ResponseWriter, r *http.Request) {
	message := "the server could not find the requested resource"
	if missing := s.discovery.missing(r.URL.Path); missing != "" {
		message += ": " + missing
	}
	err := newStatusError(http.StatusNotFound, metav1.StatusReasonNotFound, message)
	err.ErrStatus.Details = &metav1.StatusDetails{} // clients look into it to learn that it is no object that is missing
	writeError(w, r, err)
}

func methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	message := fmt.Sprintf("the server does not allow this method on the requested resource: %s", r.Method)
	writeError(w, r, newStatusError(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, message))
}
