package listwatch

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	corev1 "k8s.io/api/core/v1"

	"listwatch/internal/kube/scheme"
)

// Request is one request under construction. Each method but Do and Watch returns the request
// itself, so that they can be chained; the first mistake is kept and returned by Do or Watch. A
// Request belongs to one goroutine.
//
// Upstream: k8s.io/client-go/rest/request.go: Request
type Request struct {
	client      *RESTClient
	verb        string
	namespace   string
	resource    string
	name        string
	subresource string
	params      url.Values
	contentType string
	body        []byte // kept as bytes, because an attempt may have to be repeated
	err         error
}

// Namespace limits the request to a namespace; "" means all of them, or that the resource has none.
func (r *Request) Namespace(namespace string) *Request {
	return r.set(&r.namespace, "namespace", namespace)
}

// Resource says what the request is about, in the plural: "pods".
func (r *Request) Resource(resource string) *Request { return r.set(&r.resource, "resource", resource) }

// Name picks one object. "" is a mistake: it would turn a DELETE of one object into a DELETE of all.
func (r *Request) Name(name string) *Request {
	if name == "" {
		return r.fail(fmt.Errorf("resource name may not be empty"))
	}
	return r.set(&r.name, "name", name)
}

// SubResource picks a part of the object: "status", "binding".
func (r *Request) SubResource(subresource string) *Request {
	return r.set(&r.subresource, "subresource", subresource)
}

// Param adds a query parameter.
func (r *Request) Param(name, value string) *Request {
	r.params.Add(name, value)
	return r
}

// VersionedParams adds the fields of an options object as query parameters.
func (r *Request) VersionedParams(options runtime.Object) *Request {
	params, err := scheme.ParameterCodec.EncodeParameters(options, corev1.SchemeGroupVersion)
	if err != nil {
		return r.fail(fmt.Errorf("encode options: %w", err))
	}
	for name, values := range params {
		r.params[name] = append(r.params[name], values...)
	}
	return r
}

// listOptions adds list options, and the parameter by which typed clients repeat their timeout.
//
// Differs: the client does not cancel the request itself.
func (r *Request) listOptions(options *metav1.ListOptions) *Request {
	if seconds := options.TimeoutSeconds; seconds != nil && *seconds > 0 {
		r.params.Set("timeout", (time.Duration(*seconds) * time.Second).String())
	}
	return r.VersionedParams(options)
}

// Body sets what is sent: bytes as they are, or an object as JSON.
func (r *Request) Body(body any) *Request {
	switch body := body.(type) {
	case nil:
	case []byte:
		r.body = body
	case runtime.Object:
		data, err := runtime.Encode(encoder, body)
		if err != nil {
			return r.fail(fmt.Errorf("encode body: %w", err))
		}
		r.body = data
	default:
		return r.fail(fmt.Errorf("body of unknown type %T", body))
	}
	return r
}

// URL returns where the request goes.
func (r *Request) URL() *url.URL {
	segments := []string{r.client.config.APIPath}
	if r.namespace != "" {
		segments = append(segments, "namespaces", r.namespace)
	}
	for _, segment := range []string{r.resource, r.name, r.subresource} {
		if segment != "" {
			segments = append(segments, segment)
		}
	}
	u := r.client.config.Base.JoinPath(segments...)
	u.RawQuery = r.params.Encode()
	return u
}

// set sets a part of the path. What could leave its place in the path is a mistake.
func (r *Request) set(part *string, what, value string) *Request {
	if value == "." || value == ".." || strings.ContainsAny(value, "/%") {
		return r.fail(fmt.Errorf("invalid %s %q", what, value))
	}
	*part = value
	return r
}

func (r *Request) fail(err error) *Request {
	if r.err == nil {
		r.err = err
	}
	return r
}

// Do sends the request, as often as it takes, and returns the complete answer. Errors are [apierrors.StatusError]s
// where the server spoke, the transport's where it did not.
//
// Upstream: k8s.io/client-go/rest/request.go: (*Request).Do
func (r *Request) Do(ctx context.Context) Result {
	start := r.client.config.Clock.Now()
	isRetryable := never
	if r.verb == http.MethodGet {
		isRetryable = isBroken
	}
	response, err := r.request(ctx, true, isRetryable)
	result := Result{err: err}
	if err == nil {
		result = r.result(response)
	}
	r.client.config.Metrics.finished(r, r.client.config.Clock.Since(start), result)
	return result
}

// Watch sends the request and returns the answer as a stream of events; a status other than 200
// is an error. The first attempt does not wait for the limiter: a watch replaces one that has
// ended. If the connection keeps breaking, the result is a watch that is closed already: after
// ten seconds of attempts the reflector watches again. ctx bounds the stream.
//
// Upstream: k8s.io/client-go/rest/request.go: (*Request).Watch
func (r *Request) Watch(ctx context.Context) (watch.Interface, error) {
	response, err := r.request(ctx, false, isStreamEnd)
	switch {
	case err != nil && isStreamEnd(err):
		return watch.NewEmptyWatch(), nil
	case err != nil:
		return nil, err
	case response.StatusCode != http.StatusOK:
		noStream := fmt.Errorf("watch %s: got status %s", r.resource, response.Status)
		return nil, cmp.Or(r.result(response).Error(), noStream)
	}
	return r.newStreamWatcher(ctx, response)
}

// request makes attempts until the answer or the error of one is not worth another. The first
// waits for the limiter only if throttled says so. isRetryable judges errors without an answer.
// The caller closes the response.
//
// Upstream: k8s.io/client-go/rest/request.go: (*Request).request
// Differs: Watch comes here, too; upstream's has a loop of its own.
func (r *Request) request(ctx context.Context, throttled bool,
	isRetryable func(error) bool) (*http.Response, error) {
	if r.err != nil {
		return nil, r.err
	}
	retry := &withRetry{request: r, isRetryable: isRetryable}
	for {
		if err := retry.before(ctx, throttled); err != nil {
			return nil, err
		}
		response, err := r.send(ctx)
		if !retry.decide(response, err) {
			return response, err
		}
		r.client.config.Metrics.repeated(r, response, err)
		discard(response)
	}
}

func (r *Request) newStreamWatcher(ctx context.Context, response *http.Response) (watch.Interface, error) {
	mediaType, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil || mediaType != runtime.ContentTypeJSON {
		_ = response.Body.Close()
		return nil, fmt.Errorf("watch %s: got content type %q, want %s", r.resource,
			response.Header.Get("Content-Type"), runtime.ContentTypeJSON)
	}
	reporter := apierrors.NewClientErrorReporter(http.StatusInternalServerError, r.verb, clientWatchDecoding)
	w := NewStreamWatcher(NewDecoder(response.Body, r.client.config.Decoder), reporter, r.client.config.Probe)
	w.Start(ctx)
	return w, nil
}

// send makes one attempt.
func (r *Request) send(ctx context.Context) (*http.Response, error) {
	var body io.Reader
	if r.body != nil {
		body = bytes.NewReader(r.body)
	}
	request, err := http.NewRequestWithContext(ctx, r.verb, r.URL().String(), body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	request.Header.Set("Accept", runtime.ContentTypeJSON)
	request.Header.Set("Accept-Encoding", "identity") // so that the wire can be read
	if r.body != nil {
		request.Header.Set("Content-Type", r.contentType)
	}
	if r.client.config.UserAgent != "" {
		request.Header.Set("User-Agent", r.client.config.UserAgent)
	}
	response, err := r.client.config.HTTP.Do(request)
	r.client.config.Metrics.attempted(r, response, err)
	return response, err
}
