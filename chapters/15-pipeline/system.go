package pipeline

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	registry "listwatch/chapters/07-registry"
	"listwatch/internal/observe/routine"
)

// systemRetry is the time between two attempts to create the system's namespaces.
const systemRetry = time.Second

// postStart does what has to be done before clients come: it creates the namespaces that they count on, without which
// nothing could be created that does not say where, and serves custom resources, until ctx is done. It begins when the
// caches are filled, so that what they are filled with is what was there before us.
//
// Upstream: k8s.io/apiserver/pkg/server/hooks.go: (*GenericAPIServer).AddPostStartHook
// Differs: looks at the namespaces once; upstream's controller looks every minute. They cannot be deleted.
func (s *Server) postStart(ctx context.Context) {
	defer close(s.stopped)
	for _, cache := range s.started {
		if cache.Wait(ctx) != nil {
			return
		}
	}
	for s.createNamespaces(ctx) != nil {
		if routine.Sleep(ctx, s.config.Clock, systemRetry) != nil {
			return
		}
	}
	s.custom.run(ctx)
}

func (s *Server) createNamespaces(ctx context.Context) error {
	for _, name := range registry.SystemNamespaces {
		// An etcd that is full takes no write, and has them already.
		_, err := s.namespaces.Get(ctx, "", name, &metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
			_, err = s.namespaces.Create(ctx, "", namespace, &metav1.CreateOptions{})
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}
