package listwatch

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"listwatch/internal/kube/scheme"
)

// maxErrorText is how much of an answer that is no Status goes into an error.
const maxErrorText = 2048

var (
	jsonInfo, _ = runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	decoder     = jsonInfo.Serializer
	encoder     = scheme.Codecs.EncoderForVersion(jsonInfo.Serializer,
		schema.GroupVersions(scheme.Scheme.PrioritizedVersionsAllGroups()))
)

// Result is a complete answer.
//
// Upstream: k8s.io/client-go/rest/request.go: Result
type Result struct {
	body       []byte
	decoder    runtime.Decoder
	statusCode int // 0: there was no answer
	err        error
}

// Error returns what went wrong, nil if nothing did.
func (r Result) Error() error { return r.err }

// StatusCode returns the HTTP status, 0 if there was no answer.
func (r Result) StatusCode() int { return r.statusCode }

// Raw returns the body, and what Error returns.
func (r Result) Raw() ([]byte, error) { return r.body, r.err }

// Get returns the body as a new object of the kind it says it is, or what Error returns, or why it does not decode.
func (r Result) Get() (runtime.Object, error) {
	if r.err != nil {
		return nil, r.err
	}
	obj, err := runtime.Decode(r.decoder, r.body)
	if err != nil {
		return nil, fmt.Errorf("decode answer: %w", err)
	}
	return obj, nil
}

// Into fills obj, which stays the caller's, with the body. It fails as Get does.
func (r Result) Into(obj runtime.Object) error {
	if r.err != nil {
		return r.err
	}
	if err := runtime.DecodeInto(r.decoder, r.body, obj); err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}
	return nil
}

// result reads an answer to its end.
//
// Upstream: k8s.io/client-go/rest/request.go: (*Request).transformResponse
func (r *Request) result(response *http.Response) Result {
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return Result{err: fmt.Errorf("read answer: %w", err)}
	}
	result := Result{body: body, decoder: r.client.config.Decoder, statusCode: response.StatusCode}
	if response.StatusCode < http.StatusOK || response.StatusCode > http.StatusPartialContent {
		result.err = r.statusError(response, body)
	}
	return result
}

// statusError returns the Status in an answer as an error, or makes one up if there is none: a
// proxy in between may speak another language.
func (r *Request) statusError(response *http.Response, body []byte) error {
	obj, err := runtime.Decode(decoder, body)
	if status, ok := obj.(*metav1.Status); err == nil && ok &&
		status.Status == metav1.StatusFailure {
		return apierrors.FromObject(status)
	}
	message := "unknown"
	if isText(response) {
		message = strings.TrimSpace(string(body[:min(len(body), maxErrorText)]))
	}
	retryAfter, _ := retryAfterSeconds(response)
	resource := schema.GroupResource{Resource: r.resource}
	return apierrors.NewGenericServerResponse(response.StatusCode, r.verb, resource, r.name,
		message, retryAfter, true)
}

func isText(response *http.Response) bool {
	contentType := response.Header.Get("Content-Type")
	if contentType == "" {
		return true
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	return err == nil && strings.HasPrefix(mediaType, "text/")
}
