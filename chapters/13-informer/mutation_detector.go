package informer

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	processor "listwatch/chapters/12-processor"

	"listwatch/internal/observe/routine"
)

const (
	mutationComparePeriod = time.Second
	// mutationRetainDuration is how long an object is watched: at least that, and less than twice.
	mutationRetainDuration = 2 * time.Minute
)

// mutationDetector finds out that a handler or a lister's caller wrote to an object of the
// store, which all handlers and listers share. It cannot find out which. It keeps a copy of
// each object and compares the two every second.
//
// Upstream: k8s.io/client-go/tools/cache/mutation_detector.go: defaultCacheMutationDetector
// Differs: switched on by [Config] and not by an environment variable; the panic names the
// object, without a diff.
type mutationDetector struct {
	// Set by newMutationDetector, never changed.
	name  string
	clock clock.WithTicker

	mu    sync.Mutex // guards added; innermost
	added []watchedObject

	// Owned by run.
	watched, retained []watchedObject // two generations; the older one, retained, is dropped
	rotated           time.Time
}

type watchedObject struct {
	shared, copied runtime.Object
}

func newMutationDetector(name string, clk clock.WithTicker) *mutationDetector {
	return &mutationDetector{name: name, clock: clk, rotated: clk.Now()}
}

// addObject watches obj from now on.
//
// Upstream: k8s.io/client-go/tools/cache/mutation_detector.go: (*defaultCacheMutationDetector).AddObject
func (d *mutationDetector) addObject(obj any) {
	shared, ok := obj.(runtime.Object)
	if !ok {
		return
	}
	copied := shared.DeepCopyObject()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.added = append(d.added, watchedObject{shared: shared, copied: copied})
}

// run compares every second until ctx is done. It panics when it finds a difference: a developer who switches it on
// wants to know, and nothing that happened since can be relied on.
//
// Upstream: k8s.io/client-go/tools/cache/mutation_detector.go: (*defaultCacheMutationDetector).Run
func (d *mutationDetector) run(ctx context.Context) {
	routine.Every(ctx, d.clock, mutationComparePeriod, func(context.Context) {
		if err := d.compareObjects(); err != nil {
			panic(err)
		}
	})
}

// compareObjects returns an error that names the first object found changed.
//
// Upstream: k8s.io/client-go/tools/cache/mutation_detector.go: (*defaultCacheMutationDetector).CompareObjects
func (d *mutationDetector) compareObjects() error {
	if d.clock.Since(d.rotated) > mutationRetainDuration {
		d.retained, d.watched = d.watched, nil
		d.rotated = d.clock.Now()
	}
	d.watched = append(d.watched, d.takeAdded()...)
	for _, generation := range [][]watchedObject{d.retained, d.watched} {
		for _, object := range generation {
			if !reflect.DeepEqual(object.shared, object.copied) {
				return fmt.Errorf("informer: an object of %s was written to: it is %v and was %v", d.name,
					object.shared, object.copied)
			}
		}
	}
	return nil
}

func (d *mutationDetector) takeAdded() []watchedObject {
	d.mu.Lock()
	defer d.mu.Unlock()
	added := d.added
	d.added = nil
	return added
}

// detectingHandler has every object watched before it is distributed.
type detectingHandler struct {
	processor.ResourceEventHandler
	detector *mutationDetector
}

// OnAdd implements [processor.ResourceEventHandler].
func (h detectingHandler) OnAdd(obj any, isInInitialList bool) {
	h.detector.addObject(obj)
	h.ResourceEventHandler.OnAdd(obj, isInInitialList)
}

// OnUpdate implements [processor.ResourceEventHandler].
func (h detectingHandler) OnUpdate(old, obj any) {
	h.detector.addObject(obj)
	h.ResourceEventHandler.OnUpdate(old, obj)
}
