package guest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// Media types of metadata alone, of a list and of one object: a cluster is large, and the stage shows names and
// versions.
const (
	listOfMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	metadataOnly   = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
)

// maxList is how many bytes a list may have, all of which is in memory at once.
const maxList = 64 << 20

var errTooMany = errors.New("too many objects")

// answers stands between one resource's informer and the server: as its transport and as its decoder. It asks for
// metadata alone, bounds the answers while they arrive, and says in words what is wrong with them.
type answers struct {
	// Set by Guest.add, never changed.
	next                http.RoundTripper
	resource, namespace string
	maxObjects          int64

	stop    func()       // called when there are too many objects, perhaps more than once; set before the first request
	first   atomic.Int64 // objects of a watch-list's first state so far; negative: it is over
	limit   atomic.Bool  // there are too many objects; stays
	trouble atomic.Value // string: what is wrong with the newest answer
}

// said returns what is wrong, and what to do; "" if nothing is.
func (a *answers) said() string {
	if a.limit.Load() {
		return fmt.Sprintf(
			"there are more than %d objects, or a list of more than %d MB: choose a namespace or a selector",
			a.maxObjects, maxList>>20)
	}
	trouble, _ := a.trouble.Load().(string)
	return trouble
}

// exceeded ends the informer.
func (a *answers) exceeded() error {
	a.limit.Store(true)
	a.stop()
	return errTooMany
}

// RoundTrip implements [http.RoundTripper].
func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	asking := r.Clone(r.Context()) // the caller's own must stay as it is
	asking.Header.Set("Accept", listOfMetadata)
	if query.Has("watch") {
		asking.Header.Set("Accept", metadataOnly)
	}
	a.first.Store(-1)
	if query.Has("sendInitialEvents") {
		a.first.Store(0)
	}
	response, err := a.next.RoundTrip(asking)
	switch {
	case r.Context().Err() != nil: // the informer has ended the request
	case err != nil:
		a.trouble.Store(fmt.Sprintf("%s cannot be reached (%v): is kubectl proxy still running? The reflector tries "+
			"again by itself", r.URL.Host, Reason(err)))
	case response.StatusCode != http.StatusOK || query.Has("watch"): // trouble with a list stays until one is read
		a.trouble.Store(a.judge(response.StatusCode))
	}
	if err == nil && !query.Has("watch") {
		response.Body = &bounded{response.Body, a, maxList}
	}
	return response, err
}

// meanings are what statuses mean to a guest, and what to do, by the status or its first digit.
var meanings = map[int]string{
	http.StatusUnauthorized: "the server does not know who we are. Log in again, and restart kubectl proxy",
	http.StatusForbidden: "you may not list and watch {resource} in {namespace}. Choose a namespace in which you " +
		"may, or ask for the right to (kubectl auth can-i watch {resource})",
	http.StatusNotFound: "the server does not have {resource} in {namespace}. Is the name right? Has its " +
		"CustomResourceDefinition been deleted?",
	3: "the server leads elsewhere, and a guest does not follow: -server must name the API itself",
	5: "the server has a problem of its own. The reflector tries again by itself",
}

// judge says what is wrong with a status; "" if nothing is. 410 and 429 heal by themselves.
func (a *answers) judge(status int) string {
	text := cmp.Or(meanings[status], meanings[status/100])
	if text == "" {
		return ""
	}
	words := strings.NewReplacer("{resource}", a.resource, "{namespace}", cmp.Or(a.namespace, "all namespaces"))
	return fmt.Sprintf("%d: %s", status, words.Replace(text))
}

// bounded is the body of an answer that is no watch's, on its way to the informer. It ends with an error if there is
// too much.
type bounded struct {
	io.ReadCloser
	answers *answers
	left    int // bytes
}

// Read implements [io.Reader].
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, b.answers.exceeded()
	}
	return n, err
}

// metadata reads metadata and Statuses.
var metadata = newMetadata()

func newMetadata() runtime.Decoder {
	known := runtime.NewScheme()
	metav1.AddToGroupVersion(known, schema.GroupVersion{Version: "v1"})
	utilruntime.Must(metav1.AddMetaToScheme(known))
	return json.NewSerializerWithOptions(json.DefaultMetaFactory, known, known, json.SerializerOptions{})
}

// Decode implements [runtime.Decoder]. It leaves of each object what a guest keeps, before the reflector collects it.
func (a *answers) Decode(data []byte, defaults *schema.GroupVersionKind,
	into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object, kind, err := metadata.Decode(data, defaults, into)
	if err != nil {
		return nil, nil, a.misread(err)
	}
	switch partial := object.(type) {
	case *metav1.PartialObjectMetadata:
		if partial.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
			a.first.Store(-1)
		}
		if a.first.Load() >= 0 && a.first.Add(1) > a.maxObjects {
			return nil, nil, a.exceeded()
		}
		slim(partial)
	case *metav1.PartialObjectMetadataList:
		if int64(len(partial.Items)) > a.maxObjects {
			return nil, nil, a.exceeded()
		}
		for i := range partial.Items {
			slim(&partial.Items[i])
		}
	}
	a.trouble.Store("")
	return object, kind, nil
}

// misread says that an answer is not what it should be, unless it is the connection that broke, and returns the error
// in short.
func (a *answers) misread(err error) error {
	if broken := net.Error(nil); errors.As(err, &broken) || errors.Is(err, context.Canceled) {
		return err
	}
	short := fmt.Errorf("%.200s", err.Error()) // it may quote all of the answer
	a.trouble.Store(fmt.Sprintf(
		"the server's answer is not understood (%v): does -server name the address of an API server?", short))
	return short
}

// slim leaves of an object what a guest keeps: its name, its version and the times of its life.
func slim(object *metav1.PartialObjectMetadata) {
	full := object.ObjectMeta
	object.ObjectMeta = metav1.ObjectMeta{
		Name: full.Name, Namespace: full.Namespace, UID: full.UID, ResourceVersion: full.ResourceVersion,
		CreationTimestamp: full.CreationTimestamp, DeletionTimestamp: full.DeletionTimestamp,
	}
	if end, ok := full.Annotations[metav1.InitialEventsAnnotationKey]; ok && end == "true" {
		object.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: end} // the reflector waits for it
	}
}
