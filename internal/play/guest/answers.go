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

// Media types of metadata, for lists and watches: clusters are large, and the stage shows names and versions.
const (
	listOfMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	metadataOnly   = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
)

// maxList is how many bytes a list may have, which are in memory at once.
const maxList = 64 << 20

var errTooMany = errors.New("too many objects")

// watched is one watched resource: an informer, with its transport and its decoder. These request only metadata, bound
// the answers while they arrive, and describe problems in words.
type watched struct {
	// Set by Guest.add, never changed.
	guest    *Guest
	resource resource
	informer *informer.SharedIndexInformer

	stop     func()       // called when there are too many objects, perhaps several times; set before the first request
	objects  atomic.Int64 // counted by the handler
	first    atomic.Int64 // objects of a watch-list's first state so far; negative: it is complete
	exceeded atomic.Bool  // there are too many objects; stays
	trouble  atomic.Value // string: the problem of the newest answer
}

// said returns the current problem, with advice; "": none.
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
	asking := r.Clone(r.Context()) // RoundTrip must not change r
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
	case r.Context().Err() != nil: // cancelled by the informer
	case err != nil:
		w.trouble.Store(fmt.Sprintf("%s cannot be reached (%v): is kubectl proxy still running? The reflector tries "+
			"again by itself", r.URL.Host, Reason(err)))
	case response.StatusCode != http.StatusOK || query.Has("watch"): // a list's problem stays until one is decoded
		w.trouble.Store(w.judge(response.StatusCode))
	}
	if err == nil && !query.Has("watch") {
		response.Body = http.MaxBytesReader(nil, response.Body, maxList)
	}
	return response, err
}

// meanings are explanations of statuses, with advice, by the status or its first digit.
var meanings = map[int]string{
	http.StatusUnauthorized: "the server does not know who we are. Log in again, and restart kubectl proxy",
	http.StatusForbidden: "you may not list and watch {resource} in {namespace}. Choose a namespace in which you " +
		"may, or ask for the right to (kubectl auth can-i watch {resource})",
	http.StatusNotFound: "the server does not have {resource} in {namespace}. Is the name right? Has its " +
		"CustomResourceDefinition been deleted?",
	3: "the server leads elsewhere, and a guest does not follow: -server must name the API itself",
	5: "the server has a problem of its own. The reflector tries again by itself",
}

// judge explains a status; "": no problem. 410 and 429 are none, because the reflector handles them.
func (w *watched) judge(status int) string {
	text := cmp.Or(meanings[status], meanings[status/100])
	if text == "" {
		return ""
	}
	words := strings.NewReplacer("{resource}", w.resource.name,
		"{namespace}", cmp.Or(w.guest.config.Choice.Namespace, "all namespaces"))
	return fmt.Sprintf("%d: %s", status, words.Replace(text))
}

// failed handles the error of a list. One that is too long ends the informer.
func (w *watched) failed(_ context.Context, _ *reflector.Reflector, err error) {
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		_ = w.exceed()
	}
}

// metadata decodes metadata and Statuses.
var metadata = newMetadata()

func newMetadata() runtime.Decoder {
	known := runtime.NewScheme()
	metav1.AddToGroupVersion(known, schema.GroupVersion{Version: "v1"})
	utilruntime.Must(metav1.AddMetaToScheme(known))
	return json.NewSerializerWithOptions(json.DefaultMetaFactory, known, known, json.SerializerOptions{})
}

// Decode implements [runtime.Decoder]. It drops what a guest does not need of each object.
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

// misread notes that an answer cannot be decoded, unless the connection broke, and returns a shorter error.
func (w *watched) misread(err error) error {
	if broken := net.Error(nil); errors.As(err, &broken) || errors.Is(err, context.Canceled) {
		return err
	}
	short := fmt.Errorf("%.200s", err.Error()) // it may quote the whole answer
	w.trouble.Store(fmt.Sprintf(
		"the server's answer is not understood (%v): does -server name the address of an API server?", short))
	return short
}

// slim reduces an object to its name, version and times of creation and deletion.
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
