package handlers

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"listwatch/internal/kube/negotiation"
)

// NewInvalidOptions returns 422 with a cause for each problem of options that parse but contradict each other.
func NewInvalidOptions(kind string, problems field.ErrorList) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", problems)
}

// toStatus returns the Status for err. An unforeseen error is a 500 without a reason.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/status.go: ErrorToAPIStatus
func toStatus(ctx context.Context, err error) *metav1.Status {
	var known apierrors.APIStatus
	var status metav1.Status
	switch {
	case errors.As(err, &known):
		status = known.Status()
	case errors.Is(context.Cause(ctx), errDeadlineExceeded):
		status = apierrors.NewTimeoutError(
			"request did not complete within the allotted timeout", 0).ErrStatus
	default:
		status = metav1.Status{Status: metav1.StatusFailure,
			Code: http.StatusInternalServerError, Message: err.Error()}
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

// WriteError answers with err as a Status, in a form that the client accepts, or else as JSON: a client that cannot
// read JSON still sees the code.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go: ErrorNegotiated
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	status := toStatus(r.Context(), err)
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	if errors.Is(context.Cause(r.Context()), errDeadlineExceeded) {
		w.Header().Set("Connection", "close") // see [Server.withDeadline]
	}
	output, negotiateErr := negotiation.Output(r)
	if negotiateErr != nil {
		output = negotiation.MediaType{Name: negotiation.JSON, Encoder: negotiation.EncoderFor(negotiation.JSON, false)}
	}
	writeObject(w, r, int(status.Code), output, status)
}

// notFound answers a request for an unknown path, with the path of the list of resources.
//
// Upstream: k8s.io/apiserver/pkg/server/handler.go: director.ServeHTTP
// Differs: upstream answers "404 page not found", from which clients make the first half of our message.
func (s *Server) notFound(w http.ResponseWriter, r *http.Request) {
	message := "the server could not find the requested resource; kubectl api-resources and docs/KINDS.md list " +
		"those it has"
	if subresource := s.missingSubresource(r.URL.Path); subresource != "" {
		message = "the server could not find the requested resource; there is no " + subresource + " here: " +
			"docs/KINDS.md lists what there is"
	}
	if strings.HasPrefix(r.URL.Path, "/apis/apiextensions.k8s.io") {
		message = "the server could not find the requested resource; there are no custom resources here: " +
			"go run ./cmd/viz -server URL shows those of a cluster that has them"
	}
	err := negotiation.Refusal(http.StatusNotFound, "%s", message)
	// by these fields clients know that no object is missing
	err.ErrStatus.Details = &metav1.StatusDetails{}
	WriteError(w, r, err)
}

// missingSubresource returns the resource and subresource of a path that has the form of a subresource: "pods/exec".
func (s *Server) missingSubresource(path string) string {
	for _, scope := range s.scopes {
		rest, found := strings.CutPrefix(path, Root(scope.Resource)+"/")
		if !found || scope.Subresource != "" {
			continue
		}
		if scope.Resource.Namespaced {
			_, rest, _ = strings.Cut(strings.TrimPrefix(rest, "namespaces/"), "/")
		}
		parts := strings.Split(strings.Trim(rest, "/"), "/")
		if len(parts) == 3 && parts[0] == scope.Resource.Name {
			return parts[0] + "/" + parts[2]
		}
	}
	return ""
}

func methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	WriteError(w, r, negotiation.Refusal(http.StatusMethodNotAllowed,
		"the server does not allow this method on the requested resource: %s", r.Method))
}
