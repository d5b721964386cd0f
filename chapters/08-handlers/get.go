package handlers

import (
	"math"
	"math/rand/v2"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metainternalversionvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"listwatch/internal/kube/negotiation"
)

// GetResource serves GET of one object.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/get.go: GetResource
func (s *Scope) GetResource(_ http.ResponseWriter, r *http.Request) (obj runtime.Object, code int, err error) {
	options := metav1.GetOptions{}
	if err := DecodeOptions(r, &options); err != nil {
		return nil, 0, err
	}
	namespace, name := s.NamespaceAndName(r)
	obj, err = s.Storage.(Getter).Get(r.Context(), namespace, name, &options)
	return obj, http.StatusOK, err
}

// ListResource answers GET of a collection with a list or, with ?watch, a stream. Both have the same path and options;
// only the length of the answer differs.
//
// The order of the steps decides which of several errors a client sees.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/get.go: ListResource
func (s *Scope) ListResource(w http.ResponseWriter, r *http.Request) {
	output, err := negotiation.Output(r)
	if err != nil {
		WriteError(w, r, err)
		return
	}
	opts, err := s.listOpts(r)
	if err != nil {
		WriteError(w, r, err)
		return
	}
	if opts.Watch || s.forceWatch {
		err = s.handleWatch(w, r, &opts, output)
	} else {
		err = s.handleList(w, r, &opts, output)
	}
	if err != nil {
		WriteError(w, r, err)
	}
}

// watchListEnabled is upstream's WatchList feature gate.
const watchListEnabled = true

// listOpts decodes, completes and checks the options of a list or watch. Errors: 400 for a
// query that does not parse and for fields that cannot be selected by, 422 for options that
// contradict each other.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/get.go: listOpts
func (s *Scope) listOpts(r *http.Request) (metainternalversion.ListOptions, error) {
	opts := metainternalversion.ListOptions{}
	if err := DecodeOptions(r, &opts); err != nil {
		return opts, err
	}
	// A watch from "" or "0" has always begun with the current state: an option says so now.
	metainternalversion.SetListOptionsDefaults(&opts, watchListEnabled)
	problems := metainternalversionvalidation.ValidateListOptions(&opts, watchListEnabled)
	problems = append(problems, validateTimeout(&opts)...)
	if len(problems) > 0 {
		return opts, NewInvalidOptions("ListOptions", problems)
	}
	if opts.FieldSelector != nil {
		selector, err := opts.FieldSelector.Transform(s.Resource.ConvertFieldLabel)
		if err != nil {
			return opts, apierrors.NewBadRequest(err.Error())
		}
		opts.FieldSelector = selector
	}
	_, name := s.NamespaceAndName(r)
	if name == "" {
		return opts, nil
	}
	return opts, selectName(&opts, name)
}

// validateTimeout refuses a negative timeout.
// Differs: upstream answers such a watch with a stream that ends at once.
func validateTimeout(opts *metainternalversion.ListOptions) field.ErrorList {
	if opts.TimeoutSeconds == nil || *opts.TimeoutSeconds >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("timeoutSeconds"), *opts.TimeoutSeconds,
		"must be greater than or equal to 0")}
}

// selectName adds the name in the path to the field selector. One that contradicts it gets 400.
func selectName(opts *metainternalversion.ListOptions, name string) error {
	if opts.FieldSelector == nil || opts.FieldSelector.Empty() {
		opts.FieldSelector = fields.OneTermEqualSelector("metadata.name", name)
		return nil
	}
	selected, ok := opts.FieldSelector.RequiresExactMatch("metadata.name")
	if !ok || selected != name {
		return apierrors.NewBadRequest("fieldSelector metadata.name doesn't match requested name")
	}
	return nil
}

// handleWatch opens the watch and serves it until it ends. It returns only errors that come before the first byte.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/get.go: handleWatch
func (s *Scope) handleWatch(w http.ResponseWriter, r *http.Request, opts *metainternalversion.ListOptions,
	output negotiation.MediaType) error {
	watcher, ok := s.Storage.(Watcher)
	if !ok {
		return apierrors.NewMethodNotSupported(s.Resource.GroupResource(), "watch")
	}
	timeout := watchTimeout(opts)
	ctx, done := s.server.withDeadline(w, r, timeout, true)
	defer done()
	// The context has the end of the watch, so that the cacher can send a last bookmark shortly before.
	ctx = announced{Context: ctx, end: s.server.Clock.Now().Add(timeout)}
	r = r.WithContext(ctx)
	namespace, _ := s.NamespaceAndName(r)
	watching, err := watcher.Watch(ctx, namespace, opts)
	if err != nil {
		return err
	}
	// Every return stops the watch, and all that feeds it.
	defer watching.Stop()
	// Whether the client waits for the bookmark that ends the initial events.
	watchList := ptr.Deref(opts.SendInitialEvents, false) && opts.AllowWatchBookmarks
	server, err := s.newWatchServer(r, watching, timeout, output, watchList)
	if err != nil {
		return err
	}
	if wantsWebsocket(r) {
		server.HandleWS(w, r)
		return nil
	}
	return server.HandleHTTP(w, r)
}

// watchTimeout returns the longest life of a watch: ?timeoutSeconds=, or a random time of one
// to two minRequestTimeouts, so that clients that came together do not come back together. A
// watch ignores `?timeout=`, which bounds other requests.
//
// Differs: at most 146 years, to which a grace period can be added; upstream's overflows.
func watchTimeout(opts *metainternalversion.ListOptions) time.Duration {
	const longest = math.MaxInt64 / int64(time.Second) / 2
	if opts.TimeoutSeconds != nil && *opts.TimeoutSeconds > 0 {
		return time.Duration(min(*opts.TimeoutSeconds, longest)) * time.Second
	}
	return time.Duration(float64(minRequestTimeout) * (1 + rand.Float64()))
}

// handleList serves a list.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/get.go: handleList
func (s *Scope) handleList(w http.ResponseWriter, r *http.Request, opts *metainternalversion.ListOptions,
	output negotiation.MediaType) error {
	namespace, _ := s.NamespaceAndName(r)
	list, err := s.Storage.(Lister).List(r.Context(), namespace, opts)
	if err != nil {
		return err
	}
	transformResponseObject(w, r, s, http.StatusOK, output, list)
	return nil
}
