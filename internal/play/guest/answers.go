package guest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	reflector "listwatch/chapters/03-reflector"
	informer "listwatch/chapters/13-informer"
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

// watched is a resource that is watched: an informer, and what stands between it and the server, as its transport and
// as its decoder. That asks for metadata alone, bounds the answers while they arrive, and says in words what is wrong
// with them.
type watched struct {
	// Set by Guest.add, never changed.
	guest    *Guest
	resource resource
	informer *informer.SharedIndexInformer

	stop     func()       // called once or more when there are too many objects; set before the first request
	objects  atomic.Int64 // that the handler has counted
	first    atomic.Int64 // objects of a watch-list's first state so far; negative: it is over
	exceeded atomic.Bool  // there are too many objects; stays
	trouble  atomic.Value // string: what is wrong with the newest answer
}

// said returns what is wrong, and what to do; "" if nothing is.
func (w *watched) said() string {
	if w.exceeded.Load() {
		return fmt.Sprintf(
			"there are more than %d objects, or a list of more than %d MB: choose a namespace or a selector",
			w.guest.config.MaxObjects, maxList>>20)
	}
	trouble, _ := w.trouble.Load().(string)
	return trouble
}

// exceed ends the informer.
func (w *watched) exceed() error {
	w.exceeded.Store(true)
	w.stop()
	return errTooMany
}

// RoundTrip implements [http.RoundTripper].
func (w *watched) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	asking := r.Clone(r.Context()) // the caller's own must stay as it is
	asking.Header.Set("Accept", listOfMetadata)
	if query.Has("watch") {
		asking.Header.Set("Accept", metadataOnly)
	}
	w.first.Store(-1)
	if query.Has("sendInitialEvents") {
		w.first.Store(0)
	}
	response, err := w.guest.transport.RoundTrip(asking)
	switch {
	case r.Context().Err() != nil: // the informer has ended the request
	case err != nil:
		w.trouble.Store(fmt.Sprintf("%s cannot be reached (%v): is kubectl proxy still running? The reflector tries "+
			"again by itself", r.URL.Host, Reason(err)))
	case response.StatusCode != http.StatusOK || query.Has("watch"): // trouble with a list stays until one is read
		w.trouble.Store(w.judge(response.StatusCode))
	}
	if err == nil && !query.Has("watch") {
		response.Body = http.MaxBytesReader(nil, response.Body, maxList)
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
func (w *watched) judge(status int) string {
	text := cmp.Or(meanings[status], meanings[status/100])
	if text == "" {
		return ""
	}
	words := strings.NewReplacer("{resource}", w.resource.name,
		"{namespace}", cmp.Or(w.guest.config.Choice.Namespace, "all namespaces"))
	return fmt.Sprintf("%d: %s", status, words.Replace(text))
}

// failed is told that a list has failed. If it was too long, that ends the informer.
func (w *watched) failed(_ context.Context, _ *reflector.Reflector, err error) {
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		_ = w.exceed()
	}
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
func (w *watched) Decode(data []byte, defaults *schema.GroupVersionKind,
	into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object, kind, err := metadata.Decode(data, defaults, into)
	if err != nil {
		return nil, nil, w.misread(err)
	}
	switch partial := object.(type) {
	case *metav1.PartialObjectMetadata:
		if partial.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
			w.first.Store(-1)
		}
		if w.first.Load() >= 0 && w.first.Add(1) > w.guest.config.MaxObjects {
			return nil, nil, w.exceed()
		}
		slim(partial)
	case *metav1.PartialObjectMetadataList:
		if int64(len(partial.Items)) > w.guest.config.MaxObjects {
			return nil, nil, w.exceed()
		}
		for i := range partial.Items {
			slim(&partial.Items[i])
		}
	}
	w.trouble.Store("")
	return object, kind, nil
}

// misread says that an answer is not what it should be, unless it is the connection that broke, and returns the error
// in short.
func (w *watched) misread(err error) error {
	if broken := net.Error(nil); errors.As(err, &broken) || errors.Is(err, context.Canceled) {
		return err
	}
	short := fmt.Errorf("%.200s", err.Error()) // it may quote all of the answer
	w.trouble.Store(fmt.Sprintf(
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
