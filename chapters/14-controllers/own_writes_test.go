package controllers_test

import (
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"

	controllers "listwatch/chapters/14-controllers"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
)

// replicas is a replica set called web, and the pods of it: how many there are, and how many the informer has shown.
type replicas struct {
	lag         time.Duration // the informer's, and the server's cache's
	made, shown atomic.Int64
	read        int // objects, by lists
}

const wanted = 3

// create creates a pod. The informer shows it later.
func (w *replicas) create() {
	w.made.Add(1)
	time.AfterFunc(w.lag, func() { w.shown.Add(1) })
}

// informer returns how many pods the informer has.
func (w *replicas) informer() int { return int(w.shown.Load()) }

// list returns how many pods a LIST finds: at "0" those that the server's cache has, at "" all.
func (w *replicas) list(resourceVersion string) int {
	found := int(w.made.Load())
	if resourceVersion == "0" {
		found = w.informer()
	}
	w.read += found
	return found
}

// looks reconciles twice, because the first status write adds the key again, and returns the pods in the informer.
func (w *replicas) looks(look func()) (pods int64) {
	look()
	time.Sleep(request)
	look()
	time.Sleep(time.Minute)
	return w.made.Load()
}

// TestExpectationsAreGivenUp after five minutes: what never comes must not block a replica set for ever.
func TestExpectationsAreGivenUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		expectations := controllers.NewControllerExpectations(clock.RealClock{})
		expectations.ExpectDeletions("default/web", []string{"default/a", "default/b"})
		expectations.DeletionObserved("default/web", "default/a")
		expectations.DeletionObserved("default/web", "default/a") // the pod is marked, and then gone
		assert.True(t, !expectations.SatisfiedExpectations("default/web"), "a was counted twice")
		time.Sleep(controllers.ExpectationsTimeout + time.Second)
		assert.True(t, expectations.SatisfiedExpectations("default/web"), "they last for ever")
	})
}
