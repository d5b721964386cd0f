package otherserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	reflector "listwatch/chapters/03-reflector"
	informer "listwatch/chapters/13-informer"
)

// Media types of metadata. Guests list and watch only metadata, because clusters are large, and the stage shows only
// names and versions.
const (
	listOfMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	metadataOnly   = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
)

// maxList limits the bytes of a list, because the whole list is in memory at once.
const maxList = 64 << 20

var errTooMany = errors.New("too many objects")

// watched is one watched resource: an informer, with its transport and its decoder. The transport requests only
// metadata. Transport and decoder limit the responses while they arrive, and record problems in words.
type watched struct {
	// Set by Guest.add, never changed.
	guest    *Guest
	resource resource
	informer *informer.SharedIndexInformer

	stop     func()       // cancels the informer; set before the first request; may be called several times
	objects  atomic.Int64 // number of objects in the informer
	first    atomic.Int64 // objects of a watch-list's initial state so far; negative while no such state arrives
	exceeded atomic.Bool  // whether there was too much data; never reset
	trouble  atomic.Value // string: the problem with the newest response or with the connection; "": none
}

// said returns the present problem, with advice; "": there is none.
func (w *watched) said() string {
	if w.exceeded.Load() {
		return fmt.Sprintf(
			"there are more than %d objects, or a list of more than %d MB: choose a namespace or a selector",
			w.guest.config.MaxObjects, maxList>>20)
	}
	trouble, _ := w.trouble.Load().(string)
	return trouble
}

// exceed stops the informer, because the server has too much data, and returns errTooMany.
func (w *watched) exceed() error {
	w.exceeded.Store(true)
	w.stop()
	return errTooMany
}

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
	case r.Context().Err() != nil: // the informer has cancelled the request
	case err != nil:
		w.trouble.Store(fmt.Sprintf("%s cannot be reached (%v): is kubectl proxy still running? The reflector tries "+
			"again by itself", r.URL.Host, err))
	case response.StatusCode != http.StatusOK || query.Has("watch"): // a list clears the problem later, when decoded
		w.trouble.Store(w.judge(response.StatusCode))
	}
	if err == nil && !query.Has("watch") {
		response.Body = http.MaxBytesReader(nil, response.Body, maxList)
	}
	return response, err
}

// meanings explains statuses and gives advice, by status or by a status's first digit.
var meanings = map[int]string{
	http.StatusUnauthorized: "the server does not know who we are. Log in again, and restart kubectl proxy",
	http.StatusForbidden: "you may not list and watch {resource} in {namespace}. Choose a namespace in which you " +
		"may, or ask for the right to (kubectl auth can-i watch {resource})",
	http.StatusNotFound: "the server does not have {resource} in {namespace}. Is the name right? Has its " +
		"CustomResourceDefinition been deleted?",
	3: "the server leads elsewhere, and a guest does not follow: -server must name the API itself",
	5: "the server has a problem of its own. The reflector tries again by itself",
}

// judge explains a status, or returns "" if it has no entry in meanings, like 410 and 429, which the reflector handles.
func (w *watched) judge(status int) string {
	text := cmp.Or(meanings[status], meanings[status/100])
	if text == "" {
		return ""
	}
	words := strings.NewReplacer("{resource}", w.resource.name,
		"{namespace}", cmp.Or(w.guest.config.Choice.Namespace, "all namespaces"))
	return fmt.Sprintf("%d: %s", status, words.Replace(text))
}

// failed handles one error of the reflector: a list of more than maxList bytes stops the informer.
func (w *watched) failed(_ context.Context, _ *reflector.Reflector, err error) {
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		_ = w.exceed()
	}
}

// metadata decodes metadata and Statuses.
var metadata = func() runtime.Decoder {
	known := runtime.NewScheme()
	metav1.AddToGroupVersion(known, schema.GroupVersion{Version: "v1"})
	utilruntime.Must(metav1.AddMetaToScheme(known))
	return json.NewSerializerWithOptions(json.DefaultMetaFactory, known, known, json.SerializerOptions{})
}()

// Decode implements [runtime.Decoder]. It slims objects, stops the informer if there are too many, and updates trouble.
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

// misread returns a shorter error and records it as the problem, unless the connection broke or was cancelled.
func (w *watched) misread(err error) error {
	if broken := net.Error(nil); errors.As(err, &broken) || errors.Is(err, context.Canceled) {
		return err
	}
	short := fmt.Errorf("%.200s", err.Error()) // the error may quote the whole response
	w.trouble.Store(fmt.Sprintf(
		"the server's answer is not understood (%v): does -server name the address of an API server?", short))
	return short
}

// slim drops all of an object's metadata but its name, namespace, UID, version, times of creation and deletion, and the
// annotation of a watch-list's end.
func slim(object *metav1.PartialObjectMetadata) {
	full := object.ObjectMeta
	object.ObjectMeta = metav1.ObjectMeta{
		Name: full.Name, Namespace: full.Namespace, UID: full.UID, ResourceVersion: full.ResourceVersion,
		CreationTimestamp: full.CreationTimestamp, DeletionTimestamp: full.DeletionTimestamp,
	}
	if end, ok := full.Annotations[metav1.InitialEventsAnnotationKey]; ok && end == "true" {
		object.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: end} // marks the state's end
	}
}

const (
	// dialTimeout is the time within which a server must accept a connection.
	dialTimeout = 5 * time.Second
	// answerTimeout is the time within which a server must send the header of a response to one of our own requests. It
	// is an API server's own default limit.
	answerTimeout = time.Minute
)

// Transport sends requests to one server with several addresses. It keeps to one address until that fails, and then
// prefers the next one. It follows no redirects, uses no proxy, and leaves compression to the client. Any goroutine
// may use it.
//
// Differs: an [http.RoundTripper] must close the request's body. This one leaves it open for the next attempt. The
// lens's ReverseProxy closes it, and our own requests have none.
type Transport struct {
	http.Transport
	servers []*url.URL
	newest  atomic.Int64 // index of the preferred address
}

// NewTransport returns a transport to the server with these addresses. There must be at least one.
func NewTransport(servers []*url.URL) *Transport {
	return &Transport{servers: servers, Transport: http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		MaxIdleConnsPerHost: 32, IdleConnTimeout: 30 * time.Second, DisableCompression: true, ForceAttemptHTTP2: true,
	}}
}

// stay makes an [http.Client] return a redirect instead of following it: a request is for one server only.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Server returns the preferred address.
func (t *Transport) Server() *url.URL { return t.servers[t.newest.Load()] }

// RoundTrip implements [http.RoundTripper]. If it cannot connect, it tries the next address at once. If the connection
// breaks later, the server may have executed the request: RoundTrip returns the error, and only the next request goes
// to the next address.
func (t *Transport) RoundTrip(r *http.Request) (response *http.Response, err error) {
	for range t.servers {
		at := t.newest.Load()
		response, err = t.Transport.RoundTrip(to(r, t.servers[at]))
		if err == nil || r.Context().Err() != nil {
			return response, err
		}
		t.newest.CompareAndSwap(at, (at+1)%int64(len(t.servers)))
		if dial := (*net.OpError)(nil); !errors.As(err, &dial) || dial.Op != "dial" {
			return nil, err
		}
	}
	return nil, err
}

// to returns a copy of the request for a server: a RoundTripper must not change the caller's request.
func to(r *http.Request, server *url.URL) *http.Request {
	sent := r.Clone(r.Context())
	sent.URL.Scheme, sent.URL.Host, sent.Host = server.Scheme, server.Host, server.Host
	if r.Body != nil && r.Body != http.NoBody {
		sent.Body = io.NopCloser(r.Body)
	}
	return sent
}
