package listwatch

import (
	"cmp"
	"net/http"
	"net/url"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"listwatch/internal/observe/probe"
)

// What a client allows itself, unless its configuration says otherwise.
const (
	defaultQPS   = 5  // rest.DefaultQPS
	defaultBurst = 10 // rest.DefaultBurst
)

// apiPath is where core/v1 lives on every server.
const apiPath = "/api/v1"

// Config describes a [RESTClient]. Base and Clock are required.
type Config struct {
	Base      *url.URL     // of the server: scheme, host, and perhaps a path before /api/v1
	HTTP      *http.Client // nil: http.DefaultClient
	UserAgent string
	QPS       float32 // requests per second in the long run; 0: five; negative: no limit
	Burst     int     // requests at once; 0: ten
	Clock     clock.WithTicker
	Probe     *probe.Probe
	Metrics   *Metrics // nil: what is counted is shown nowhere

	// APIPath is where the resources are: "/apis/apps/v1"; "": core/v1's.
	APIPath string
	// Decoder reads the objects that come as JSON; nil: core/v1's.
	Decoder runtime.Decoder
}

// RESTClient makes requests for core/v1 objects in JSON. It may be used from any goroutine.
//
// Upstream: k8s.io/client-go/rest/client.go: RESTClient
// Differs: one API group; JSON only, and not compressed; no warnings, no per-URL backoff.
type RESTClient struct {
	// Set by NewRESTClient, never changed.
	config  Config        // with its defaults
	limiter *rate.Limiter // nil: no limit
}

// NewRESTClient returns a client.
//
// Upstream: k8s.io/client-go/rest/client.go: NewRESTClient
func NewRESTClient(config Config) *RESTClient {
	config.HTTP = cmp.Or(config.HTTP, http.DefaultClient)
	config.APIPath = cmp.Or(config.APIPath, apiPath)
	config.Decoder = cmp.Or[runtime.Decoder](config.Decoder, decoder)
	if config.Metrics == nil {
		config.Metrics = NewMetrics(prometheus.NewRegistry())
	}
	c := &RESTClient{config: config}
	if qps := cmp.Or(config.QPS, defaultQPS); qps > 0 {
		c.limiter = rate.NewLimiter(rate.Limit(qps), cmp.Or(config.Burst, defaultBurst))
	}
	return c
}

// WithAPIPath returns a client that shares everything with c, its limit included, and asks for resources of another
// group: those at "/apis/coordination.k8s.io/v1".
func (c *RESTClient) WithAPIPath(path string) *RESTClient {
	copied := *c
	copied.config.APIPath = path
	return &copied
}

// Untyped returns a client that shares everything with c, its limit included, and reads each JSON object as an
// [unstructured.Unstructured], whether or not its kind has a Go type here.
func (c *RESTClient) Untyped() *RESTClient {
	copied := *c
	copied.config.Decoder = unstructured.UnstructuredJSONScheme
	return &copied
}

// Verb begins a request.
func (c *RESTClient) Verb(verb string) *Request {
	return &Request{client: c, verb: verb, params: url.Values{}, contentType: runtime.ContentTypeJSON}
}

// Get begins a GET: of one object, a list or a watch.
func (c *RESTClient) Get() *Request { return c.Verb(http.MethodGet) }

// Post begins a POST, which creates.
func (c *RESTClient) Post() *Request { return c.Verb(http.MethodPost) }

// Put begins a PUT, which replaces.
func (c *RESTClient) Put() *Request { return c.Verb(http.MethodPut) }

// Delete begins a DELETE.
func (c *RESTClient) Delete() *Request { return c.Verb(http.MethodDelete) }

// Patch begins a PATCH, whose body is of the given type.
func (c *RESTClient) Patch(patchType types.PatchType) *Request {
	request := c.Verb(http.MethodPatch)
	request.contentType = string(patchType)
	return request
}
