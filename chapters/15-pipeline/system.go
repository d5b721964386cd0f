package pipeline

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	cacher "listwatch/chapters/06-cacher"
	registry "listwatch/chapters/07-registry"
	"listwatch/internal/observe/routine"
)

// systemRetry is the time between two attempts to create the system's namespaces.
const systemRetry = time.Second

// systemNamespaces creates the namespaces that clients count on: without "default" nothing could be created that
// does not say where.
//
// Upstream: k8s.io/apiserver/pkg/server/hooks.go: (*GenericAPIServer).AddPostStartHook
// Differs: looks once; upstream's controller looks every minute. They cannot be deleted.
type systemNamespaces struct {
	// Set by newSystemNamespaces, never changed.
	store  *registry.Store
	caches []*cacher.Cacher
	clock  clock.WithTicker

	goal
}

func newSystemNamespaces(store *registry.Store, caches []*cacher.Cacher, clk clock.WithTicker) *systemNamespaces {
	return &systemNamespaces{store: store, caches: caches, clock: clk,
		goal: newGoal("the system's namespaces are not created yet")}
}

// run tries until it has succeeded or ctx is done. It begins when the caches are filled, so that what they are filled
// with is what was there before us.
func (s *systemNamespaces) run(ctx context.Context) {
	defer close(s.stopped)
	for _, cache := range s.caches {
		if cache.Wait(ctx) != nil {
			return
		}
	}
	for s.create(ctx) != nil {
		if routine.Sleep(ctx, s.clock, systemRetry) != nil {
			return
		}
	}
	close(s.reached)
}

func (s *systemNamespaces) create(ctx context.Context) error {
	for _, name := range registry.SystemNamespaces {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := s.store.Create(ctx, "", namespace, &metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// goal is what a controller of the server reaches before clients are served.
type goal struct {
	missing error         // why it is not reached
	reached chan struct{} // closed by the controller when it is
	stopped chan struct{} // closed by the controller when it returns
}

func newGoal(missing string) goal {
	return goal{errors.New(missing), make(chan struct{}), make(chan struct{})}
}

// ready returns nil once the goal is reached.
func (g goal) ready() error {
	select {
	case <-g.reached:
		return nil
	default:
		return g.missing
	}
}

// wait returns when ready would return nil. The error is ctx's, or that the server has stopped.
func (g goal) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-g.reached:
		return nil
	case <-g.stopped:
		return g.ready()
	}
}
