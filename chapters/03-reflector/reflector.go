package reflector

import (
	"context"
	"math/rand/v2"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

// The server is asked to end each watch after five to ten minutes: this replaces a watch that hangs there, and ends one
// whose client has gone. It does not help against a connection that died silently, where the end is lost, too.
const (
	defaultMinWatchTimeout = 5 * time.Minute // upstream's default, see Differs on [Reflector]
	defaultMaxWatchTimeout = 10 * time.Minute
)

// Config describes a [Reflector]. ListerWatcher, Store and Clock are required.
type Config struct {
	Name          string // for errors and snapshots: "informer", "storage/cacher: /registry/pods"
	ListerWatcher ListerWatcher
	Store         Store
	ExpectedType  runtime.Object // events about any other type are skipped; nil: every type is welcome
	Clock         clock.WithTicker
	Probe         *probe.Probe

	ResyncPeriod time.Duration // 0: never
	ShouldResync func() bool   // asked when the period is over, by the goroutine that calls Resync; nil: yes

	// UseWatchList makes the reflector ask for the initial state as a stream. After an error that no retry can cure, it
	// falls back to a list, for that round.
	UseWatchList bool

	// WatchListPageSize is the page size of every list; 0 lets the reflector choose. Despite its name, which is
	// upstream's, it has nothing to do with UseWatchList.
	WatchListPageSize int64

	// MaxInternalErrorRetryDuration is how long after a first 500 InternalError watches are opened again, without a
	// list; a minute without one makes the next the first. 0: never. The cacher gives etcd 30 s to elect a leader.
	MaxInternalErrorRetryDuration time.Duration

	// WatchErrorHandler is called after every round that ended because a list failed, or a watch that follows the state
	// could not be opened. It is not called for a failed watch-list (a list follows), a watch refused with 429 or by a
	// dead server, an ERROR event, or the end of ctx. It runs on the reflector's goroutine, before the backoff.
	WatchErrorHandler func(ctx context.Context, r *Reflector, err error)

	Jitter func() float64 // in [0, 1), for delays and watch timeouts; nil: math/rand
	KeyOf  KeyFunc        // the store's key of an object, for probes only; nil: MetaNamespaceKeyFunc
}

// Reflector makes a [Store] follow a [ListerWatcher].
//
// Upstream: k8s.io/client-go/tools/cache/reflector.go: Reflector
// Differs: does not log; what upstream logs is a probe. No check of
// the kind of unstructured objects. No consistency check of streamed against listed state. The
// time limit of a watch is fixed.
type Reflector struct {
	// Set by New, never changed.
	config       Config
	expectedType reflect.Type // nil: any
	probe        *probe.Probe

	// Owned by the goroutine in Run.
	backoff      backoff
	lastWatchEnd string // why the last watch ended, or could not be opened
	// The first list came in pages, so not from a watch cache: do not avoid paging.
	paginatedResult bool

	nStoreErrors atomic.Int64 // events that the store has refused

	mu sync.RWMutex // guards the fields below; innermost
	// Of the newest event or list that reached the store; "": none yet.
	lastSyncResourceVersion string
	// The server refused it as too old or too new.
	isLastSyncResourceVersionUnavailable bool
}

// New returns a reflector that does nothing until [Reflector.Run].
//
// Upstream: k8s.io/client-go/tools/cache/reflector.go: NewReflectorWithOptions
func New(config Config) *Reflector {
	if config.Jitter == nil {
		config.Jitter = rand.Float64
	}
	if config.KeyOf == nil {
		config.KeyOf = MetaNamespaceKeyFunc
	}
	r := &Reflector{
		config:  config,
		probe:   config.Probe,
		backoff: backoff{clock: config.Clock, jitter: config.Jitter},
	}
	if config.ExpectedType != nil {
		r.expectedType = reflect.TypeOf(config.ExpectedType)
	}
	return r
}

// Run lists and watches, again and again, until ctx is done. Between two rounds it waits, even
// if the last one ended without an error: a round only ends when something is wrong. Only one
// goroutine may call it. When ctx is done, a wait or a watch ends at once, and a list when the
// ListerWatcher returns; no WatchErrorHandler is called. After Run, nothing calls the store.
//
// Upstream: k8s.io/client-go/tools/cache/reflector.go: (*Reflector).RunWithContext
func (r *Reflector) Run(ctx context.Context) {
	for {
		err := r.ListAndWatch(ctx)
		if ctx.Err() != nil {
			return
		}
		reason := r.lastWatchEnd
		if err != nil {
			reason = err.Error()
			if r.config.WatchErrorHandler != nil {
				r.config.WatchErrorHandler(ctx, r, err)
			}
		}
		if !r.backOff(ctx, reason) {
			return
		}
	}
}

// backOff waits out one step of the backoff. It returns false when ctx is done.
func (r *Reflector) backOff(ctx context.Context, reason string) bool {
	return r.pause(ctx, reason, r.backoff.delay())
}

// pause waits for delay. It returns false when ctx is done.
func (r *Reflector) pause(ctx context.Context, reason string, delay time.Duration) bool {
	r.probe.Text(probe.ReflectorBackoff, reason, "", 0, int(delay/time.Millisecond))
	return routine.Sleep(ctx, r.config.Clock, delay) == nil
}

// ListAndWatch does one round: it brings the store to a consistent state and follows the
// changes from there for as long as that goes well. The error is that of a list, or of a watch
// that could not be opened; a watch that ended later, for whatever reason, and a done ctx give
// nil. It must not be called twice at once.
//
// Upstream: k8s.io/client-go/tools/cache/reflector.go: (*Reflector).ListAndWatchWithContext
func (r *Reflector) ListAndWatch(ctx context.Context) error {
	if r.config.UseWatchList {
		w, err := r.watchList(ctx)
		if err == nil && w == nil {
			return nil // ctx is done
		}
		if err == nil {
			return r.watchWithResync(ctx, w)
		}
		// For this round only: the next one tries the stream again.
	}
	if err := r.list(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	return r.watchWithResync(ctx, nil)
}

// LastSyncResourceVersion returns the version of the newest list or event that was given to the store, also of an event
// refused, except with 410; "" before the first. Initial ADDED events do not count. The store may be a moment ahead.
//
// Upstream: k8s.io/client-go/tools/cache/reflector.go: (*Reflector).LastSyncResourceVersion
func (r *Reflector) LastSyncResourceVersion() string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.lastSyncResourceVersion
}

func (r *Reflector) setLastSyncResourceVersion(resourceVersion string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastSyncResourceVersion = resourceVersion
}

func (r *Reflector) setIsLastSyncResourceVersionUnavailable(unavailable bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isLastSyncResourceVersionUnavailable = unavailable
}

// relistResourceVersion returns the version a LIST asks for. The first list takes what the
// server has at hand ("0"); a later one must not be older than what the store has seen; and if
// the server refused that, lists and streams ask for the newest state ("") until one succeeds.
// The server makes sure of it by asking its source how far it is.
//
// Upstream: k8s.io/client-go/tools/cache/reflector.go: (*Reflector).relistResourceVersion
func (r *Reflector) relistResourceVersion() string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.isLastSyncResourceVersionUnavailable {
		return ""
	}
	if r.lastSyncResourceVersion == "" {
		return "0"
	}
	return r.lastSyncResourceVersion
}

// rewatchResourceVersion returns the version a streamed initial state asks for. Unlike a list, the first one does not
// take what is at hand: it is served from the watch cache, but only once that has caught up with the source.
//
// Upstream: k8s.io/client-go/tools/cache/reflector.go: (*Reflector).rewatchResourceVersion
func (r *Reflector) rewatchResourceVersion() string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.isLastSyncResourceVersionUnavailable {
		return ""
	}
	return r.lastSyncResourceVersion
}

// watchTimeoutSeconds returns a random duration between the minimum and the maximum, as options carry it.
func (r *Reflector) watchTimeoutSeconds() *int64 {
	const spread = defaultMaxWatchTimeout - defaultMinWatchTimeout
	seconds := int64(defaultMinWatchTimeout.Seconds() + r.config.Jitter()*spread.Seconds())
	return &seconds
}

// isUnavailable reports whether err says that the resource version cannot be had, and if so remembers to ask for
// the newest one next.
func (r *Reflector) isUnavailable(err error) bool {
	if !isExpiredError(err) && !isTooLargeResourceVersionError(err) {
		return false
	}
	r.setIsLastSyncResourceVersionUnavailable(true)
	return true
}
