package main

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// written is the annotation that says how many pages of a book there are.
const written = "example.com/written"

// manage runs a manager until a signal comes. Of all that run it works only while it leads.
func manage(config *rest.Config) error {
	ctrl.SetLogger(zap.New())
	m, err := ctrl.NewManager(config, manager.Options{
		Metrics:        server.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "books.example.com", LeaderElectionNamespace: metav1.NamespaceDefault,
	})
	if err != nil {
		return err
	}
	books, err := predicate.LabelSelectorPredicate(metav1.LabelSelector{MatchLabels: map[string]string{"kind": "book"}})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(m).Named("books").WithEventFilter(books).For(&corev1.ConfigMap{}).
		Owns(&corev1.Pod{}). // it has none, but its watch is seen on the stage of pods
		Complete(&writer{m.GetClient(), m.GetEventRecorder("books")})
	if err != nil {
		return err
	}
	return m.Start(ctrl.SetupSignalHandler())
}

// writer writes a config map for each page of a book, which is a config map, too.
type writer struct {
	client.Client
	events events.EventRecorder
}

// Reconcile writes the pages that are missing, and then their number.
func (w *writer) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	book := &corev1.ConfigMap{}
	if err := w.Get(ctx, request.NamespacedName, book); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	pages, err := strconv.Atoi(book.Data["pages"])
	if err != nil {
		return ctrl.Result{}, err
	}
	for n := range pages {
		page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", book.Name, n+1), Namespace: book.Namespace}}
		did, err := controllerutil.CreateOrUpdate(ctx, w.Client, page, func() error {
			return controllerutil.SetControllerReference(book, page, w.Scheme())
		})
		if err != nil {
			return ctrl.Result{}, err
		}
		if did != controllerutil.OperationResultNone {
			w.events.Eventf(book, page, corev1.EventTypeNormal, "Written", "Write", "wrote page %s", page.Name)
		}
	}
	before := book.DeepCopy()
	metav1.SetMetaDataAnnotation(&book.ObjectMeta, written, book.Data["pages"])
	return ctrl.Result{}, w.Patch(ctx, book, client.MergeFrom(before))
}
