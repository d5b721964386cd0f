package cacher

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	storage "listwatch/chapters/01-storage"
	reflector "listwatch/chapters/03-reflector"
	"listwatch/internal/observe/probe"
)

// The ways to hand an event to watchers whose input is full.
const (
	// TwoPhase offers the event to every watcher first, and then waits for the full ones together, within one time
	// budget, as 0.37 does.
	TwoPhase = "two-phase"
	// Sequential waits for each full watcher in turn before it goes on to the next, as 1.10 did.
	Sequential = "sequential"
)

// Config describes the cache of one resource.
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: Config
// Differs: KeyFunc is the reflector's, too, and takes any.
type Config struct {
	Storage        storage.Interface
	ResourcePrefix string // "/registry/pods": begins with a slash, ends without
	Resource       schema.GroupResource
	Namespaced     bool // keys are prefix/namespace/name, otherwise prefix/name

	KeyFunc     reflector.KeyFunc // of the storage
	NewFunc     func() runtime.Object
	NewListFunc func() runtime.Object
	GetAttrs    storage.AttrFunc
	// Watchers that pin the trigger's field are found by its value, and so are objects when a list pins it. nil: none.
	Trigger *storage.Trigger

	Clock        clock.WithTicker
	Patience     clock.WithTicker     // the clock of readers that wait for a fresh cache; nil: Clock
	Probe        *probe.Probe         // bound to the resource
	Registry     *prometheus.Registry // shows the metrics; nil: they are not shown
	Compaction   Compaction           // nil: the storage forgets nothing
	RingCapacity int                  // 0: as the rate of events demands
	Dispatch     string               // [TwoPhase] or [Sequential]; "" means the former
	UseWatchList bool                 // get the first state as a stream instead of a list
}

func (c *Config) validate() error {
	if !strings.HasPrefix(c.ResourcePrefix, "/") || strings.HasSuffix(c.ResourcePrefix, "/") {
		return fmt.Errorf("cacher for %s: resource prefix %q must begin, and not end, with a slash", c.Resource,
			c.ResourcePrefix)
	}
	return nil
}
