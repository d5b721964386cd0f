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

// postStart creates the namespaces that clients count on: without them, a client could create
// nothing that does not name its namespace. It begins when the caches are filled, so that they
// are filled with what was there before us. It ends when the namespaces are there, or ctx is
// done.
//
// Upstream: k8s.io/apiserver/pkg/server/hooks.go: (*GenericAPIServer).AddPostStartHook
// Differs: looks at the namespaces once; upstream's controller looks every minute. They cannot
// be deleted.
func (s *Server) postStart(ctx context.Context) {
	defer close(s.started)
	if s.waitForCaches(ctx) != nil {
		return
	}
	for s.createNamespaces(ctx) != nil {
		if routine.Sleep(ctx, s.config.Clock, systemRetry) != nil {
			return
		}
	}
	s.prepared.Store(true)
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
