package listwatch

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	reflector "listwatch/chapters/03-reflector"
)

// ListWatch is one resource of a server, in one namespace or all, as a
// [reflector.ListerWatcher].
//
// Upstream: k8s.io/client-go/tools/cache/listwatch.go: ListWatch
// Differs: holds what it needs; upstream holds two functions, each in two generations, that
// hold it.
type ListWatch struct {
	// Set by RESTClient.ListWatch, never changed.
	client          *RESTClient
	resource        string
	namespace       string // "": all
	optionsModifier func(*metav1.ListOptions)
}

// ListWatch returns a ListWatch of one resource, in one namespace or, with "", in all. optionsModifier, which may be
// nil, changes the options of every list and watch before they are sent: this is where selectors are put in.
//
// Upstream: k8s.io/client-go/tools/cache/listwatch.go: NewFilteredListWatchFromClient
// Differs: a method, which is what makers of informers ask of a client.
func (c *RESTClient) ListWatch(resource, namespace string,
	optionsModifier func(*metav1.ListOptions)) reflector.ListerWatcher {
	return &ListWatch{client: c, resource: resource, namespace: namespace, optionsModifier: optionsModifier}
}

// List implements [reflector.ListerWatcher]: it makes one request. The reflector's pager asks for further pages.
func (lw *ListWatch) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return lw.request(options).Do(ctx).Get()
}

// Watch implements [reflector.ListerWatcher]. With an error, no stream is open.
func (lw *ListWatch) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	return lw.request(options).Watch(ctx)
}

func (lw *ListWatch) request(options metav1.ListOptions) *Request {
	if lw.optionsModifier != nil {
		lw.optionsModifier(&options)
	}
	return lw.client.Get().Namespace(lw.namespace).Resource(lw.resource).listOptions(&options)
}
