package cacher

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	watchcache "listwatch/chapters/04-watchcache"
	"listwatch/internal/observe/probe"
)

// Mode says how an event is handed to watchers whose input is full.
type Mode int

const (
	// TwoPhase offers the event to every watcher first, and then waits for the full ones together, within one time
	// budget: what 0.37 does.
	TwoPhase Mode = iota
	// Sequential waits for each full watcher in turn before it goes on to the next: what 1.10 did.
	Sequential
)

// String returns the mode as the command line spells it.
func (m Mode) String() string {
	if m == Sequential {
		return "sequential"
	}
	return "two-phase"
}

// Config describes the cache of one resource.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: Config
type Config struct {
	Storage        storage.Interface
	ResourcePrefix string // "/registry/pods": begins with a slash, ends without
	Resource       schema.GroupResource
	Namespaced     bool // keys are prefix/namespace/name, otherwise prefix/name

	KeyFunc     func(obj runtime.Object) (string, error)
	NewFunc     func() runtime.Object
	NewListFunc func() runtime.Object
	GetAttrs    storage.AttrFunc
	// Indexers has at most one entry: a field, and how to read it. Watchers that pin the field are found by its value,
	// and so are objects when a list pins it.
	Indexers map[string]func(obj runtime.Object) string

	Clock        clock.WithTicker
	Patience     clock.WithTicker     // by which readers wait until the cache is fresh; nil: Clock
	Probe        *probe.Probe         // bound to the resource
	Registry     *prometheus.Registry // where metrics are shown; nil: nowhere
	Compaction   Compaction           // nil: the storage forgets nothing
	RingCapacity int                  // 0: as the rate of events demands
	Dispatch     Mode
	UseWatchList bool // get the first state as a stream instead of a list
	// WatcherIDs numbers the watchers, on from those of a cache that this one replaces; nil: from 1 on.
	WatcherIDs *atomic.Int64
}

func (c *Config) validate() error {
	switch {
	case len(c.Indexers) > 1:
		return fmt.Errorf("cacher for %s: more than one trigger", c.Resource)
	case !strings.HasPrefix(c.ResourcePrefix, "/"), strings.HasSuffix(c.ResourcePrefix, "/"):
		return fmt.Errorf("cacher for %s: resource prefix %q must begin, and not end, with a slash", c.Resource,
			c.ResourcePrefix)
	}
	return nil
}

// trigger finds watchers, and listed objects, by the value of one field.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: indexedTriggerFunc
type trigger struct {
	field   string // "spec.nodeName"
	valueOf func(obj runtime.Object) string
}

// trigger returns the one entry of Indexers, nil if there is none.
func (c *Config) trigger() *trigger {
	for field, valueOf := range c.Indexers {
		return &trigger{field, valueOf}
	}
	return nil
}

// listIndexers returns the trigger as an index over the store.
func (t *trigger) listIndexers() map[string]watchcache.IndexFunc {
	if t == nil {
		return nil
	}
	valueOf := func(e *watchcache.Element) string { return t.valueOf(e.Object) }
	return map[string]watchcache.IndexFunc{storage.FieldIndex(t.field): valueOf}
}

// pinnedBy returns the value to which pred pins the trigger's field, if it does.
func (t *trigger) pinnedBy(pred storage.SelectionPredicate) (value string, ok bool) {
	if t == nil || pred.Field == nil || !slices.Contains(pred.IndexFields, t.field) {
		return "", false
	}
	return pred.Field.RequiresExactMatch(t.field)
}
