package guest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"listwatch/internal/play/wiretap"
)

// Media types of metadata alone, of a list and of one object: a cluster is large, and the stage shows names and
// versions.
const (
	listOfMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	metadataOnly   = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
)

// Bounds of what a server may send us.
const (
	maxList       = 64 << 20 // bytes of a list, all of which is in memory at once
	maxError      = 1 << 20  // bytes of an answer that is an error
	maxRetryAfter = time.Minute
)

var errTooMany = errors.New("too many objects")

// answers is the transport of one resource's informer. It asks for metadata alone, bounds the answers while they
// arrive, and says in words what is wrong with them.
type answers struct {
	// Set by Guest.add, never changed.
	next                http.RoundTripper
	resource, namespace string
	maxObjects          int64

	stop    func()       // called when there are too many objects, perhaps more than once; set before the first request
	limit   atomic.Bool  // there are too many objects; stays
	status  atomic.Value // string: what is wrong with the newest answer's header
	content atomic.Value // string: what is wrong with what was read last
}

// said returns what is wrong, and what to do; "" if nothing is.
func (a *answers) said() string {
	if a.limit.Load() {
		return fmt.Sprintf(
			"there are more than %d objects, or a list of more than %d MB: choose a namespace or a selector",
			a.maxObjects, maxList>>20)
	}
	if status, _ := a.status.Load().(string); status != "" {
		return status
	}
	content, _ := a.content.Load().(string)
	return content
}

// exceeded ends the informer.
func (a *answers) exceeded() error {
	a.limit.Store(true)
	a.stop()
	return errTooMany
}

// misread says that an answer is not what it should be, unless it is the connection that broke, and returns the error
// in short.
func (a *answers) misread(err error) error {
	if broken := net.Error(nil); errors.As(err, &broken) || errors.Is(err, context.Canceled) {
		return err
	}
	short := fmt.Errorf("%.200s", err.Error()) // it may quote all of the answer
	a.content.Store(fmt.Sprintf(
		"the server's answer is not understood (%v): does -server name the address of an API server?", short))
	return short
}

// RoundTrip implements [http.RoundTripper].
func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	asking := r.Clone(r.Context()) // the caller's own must stay as it is
	asking.Header.Set("Accept", listOfMetadata)
	if query.Has("watch") {
		asking.Header.Set("Accept", metadataOnly)
	}
	response, err := a.next.RoundTrip(asking)
	switch {
	case r.Context().Err() != nil: // the informer has ended the request
		return response, err
	case err != nil:
		a.status.Store(fmt.Sprintf("%s cannot be reached (%v): is kubectl proxy still running? The reflector tries "+
			"again by itself",
			r.URL.Host, Reason(err)))
		return nil, err
	}
	a.status.Store(a.judge(response))
	body := response.Body
	switch {
	case response.StatusCode != http.StatusOK:
		response.Body = readCloser{io.LimitReader(body, maxError), body}
	case query.Has("watch"):
		arriving := query.Has("sendInitialEvents")
		response.Body = &watchBody{ReadCloser: body, answers: a, events: wiretap.NewEvents(""), arriving: arriving}
	default:
		response.Body = &listBody{body, a, maxList}
	}
	return response, nil
}

type readCloser struct {
	io.Reader
	io.Closer
}

// advice says what a status means to a guest. 410 and 429 heal by themselves.
var advice = map[int]string{
	http.StatusUnauthorized: "the server does not know who we are. Log in again, and restart kubectl proxy",
	http.StatusForbidden: "you may not list and watch {resource} in {namespace}. " +
		"Choose a namespace in which you may, or ask for the right to (kubectl auth can-i watch {resource})",
	http.StatusNotFound: "the server does not have {resource} in {namespace} any more. Has its " +
		"CustomResourceDefinition been deleted?",
	http.StatusNotAcceptable:       "the server cannot send metadata of {resource} alone",
	http.StatusMethodNotAllowed:    "{resource} cannot be watched",
	http.StatusMovedPermanently:    leadsElsewhere,
	http.StatusFound:               leadsElsewhere,
	http.StatusTemporaryRedirect:   leadsElsewhere,
	http.StatusPermanentRedirect:   leadsElsewhere,
	http.StatusInternalServerError: ownProblem,
	http.StatusBadGateway:          ownProblem,
	http.StatusServiceUnavailable:  ownProblem,
	http.StatusGatewayTimeout:      ownProblem,
}

const (
	leadsElsewhere = "the server leads elsewhere, and a guest does not follow: -server must name the API itself"
	ownProblem     = "the server has a problem of its own. The reflector tries again by itself"
)

// judge says what is wrong with the header of an answer, and what to do; "" if nothing is. It lets a guest wait a
// minute at most.
func (a *answers) judge(response *http.Response) string {
	status, retryAfter := response.StatusCode, response.Header.Get("Retry-After")
	seconds, err := strconv.ParseUint(retryAfter, 10, 64)
	if seconds > uint64(maxRetryAfter/time.Second) && (err == nil || errors.Is(err, strconv.ErrRange)) {
		response.Header.Set("Retry-After", strconv.Itoa(int(maxRetryAfter/time.Second)))
		return fmt.Sprintf("%d: the server asks us to wait %.30s seconds. We ask again after %v", status, retryAfter,
			maxRetryAfter)
	}
	contentType := response.Header.Get("Content-Type")
	mediaType, _, err := mime.ParseMediaType(contentType)
	if status == http.StatusOK && (err != nil || mediaType != runtime.ContentTypeJSON) {
		return fmt.Sprintf(
			"the server answers in %.100q, and not in JSON: does -server name the address of an API server?",
			contentType)
	}
	text, known := advice[status]
	if !known {
		return ""
	}
	words := strings.NewReplacer("{resource}", a.resource, "{namespace}", cmp.Or(a.namespace, "all namespaces"))
	return fmt.Sprintf("%d: %s", status, words.Replace(text))
}

// watchBody is the body of a watch on its way to the informer. It counts the objects of the first state while they
// arrive.
type watchBody struct {
	io.ReadCloser
	answers  *answers
	events   *wiretap.Events
	arriving bool // the bookmark that ends the first state has not come
	objects  int64
}

// Read implements [io.Reader].
func (b *watchBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	for _, event := range b.events.Read(p[:n]) {
		if event.Type == "" && event.Size <= wiretap.MaxEvent {
			b.answers.misread(fmt.Errorf("a frame of %d bytes is no event", event.Size))
		}
		if b.arriving = b.arriving && !event.InitialEnd; !b.arriving {
			continue
		}
		if b.objects++; b.objects > b.answers.maxObjects {
			return 0, b.answers.exceeded()
		}
	}
	return n, err
}

// listBody is the body of a list on its way to the informer. It ends with an error if there is too much.
type listBody struct {
	io.ReadCloser
	answers *answers
	left    int // bytes
}

// Read implements [io.Reader].
func (b *listBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, b.answers.exceeded()
	}
	return n, err
}

// slim leaves of an object what a guest keeps: its name, its version and the times of its life. A name or version
// longer than an API server allows is cut off, so that each object takes less than a kilobyte.
func slim(object *metav1.PartialObjectMetadata) {
	full := object.ObjectMeta
	object.ObjectMeta = metav1.ObjectMeta{
		Name: wiretap.Cut(full.Name, maxName), Namespace: wiretap.Cut(full.Namespace, maxName),
		UID:               types.UID(wiretap.Cut(string(full.UID), maxName)),
		ResourceVersion:   wiretap.Cut(full.ResourceVersion, maxName),
		CreationTimestamp: full.CreationTimestamp, DeletionTimestamp: full.DeletionTimestamp,
	}
	if end, ok := full.Annotations[metav1.InitialEventsAnnotationKey]; ok && end == "true" {
		object.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: end} // the reflector waits for it
	}
}

// decoder reads metadata and Statuses. It leaves of each object what a guest keeps, before the reflector collects it.
type decoder struct {
	runtime.Decoder
	answers *answers
}

// Decode implements [runtime.Decoder].
func (d decoder) Decode(data []byte, defaults *schema.GroupVersionKind,
	into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object, kind, err := d.Decoder.Decode(data, defaults, into)
	if err != nil {
		return nil, nil, d.answers.misread(err)
	}
	switch partial := object.(type) {
	case *metav1.PartialObjectMetadata:
		slim(partial)
	case *metav1.PartialObjectMetadataList:
		if int64(len(partial.Items)) > d.answers.maxObjects {
			return nil, nil, d.answers.exceeded()
		}
		for i := range partial.Items {
			slim(&partial.Items[i])
		}
	}
	d.answers.content.Store("")
	return object, kind, nil
}
