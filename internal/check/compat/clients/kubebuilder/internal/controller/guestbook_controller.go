package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	webappv1 "example.com/guestbook/api/v1"
)

// GuestbookReconciler reconciles a Guestbook object.
type GuestbookReconciler struct {
	client.Client
	Scheme *runtime.Scheme
	Events events.EventRecorder
}

// +kubebuilder:rbac:groups=webapp.example.com,resources=guestbooks,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=webapp.example.com,resources=guestbooks/status,verbs=get;update;patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile is part of the main kubernetes reconciliation loop which aims to
// move the current state of the cluster closer to the desired state.
func (r *GuestbookReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	book := &webappv1.Guestbook{}
	if err := r.Get(ctx, req.NamespacedName, book); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	for n := int32(1); n <= book.Spec.Pages; n++ {
		page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", book.Name, n), Namespace: book.Namespace}}
		result, err := controllerutil.CreateOrUpdate(ctx, r.Client, page, func() error {
			return controllerutil.SetControllerReference(book, page, r.Scheme)
		})
		if err != nil {
			return ctrl.Result{}, err
		}
		if result != controllerutil.OperationResultNone {
			r.Events.Eventf(book, page, corev1.EventTypeNormal, "Written", "Write", "wrote page %s", page.Name)
		}
	}
	book.Status.Pages = book.Spec.Pages
	meta.SetStatusCondition(&book.Status.Conditions, metav1.Condition{Type: "Available", Status: metav1.ConditionTrue,
		Reason: "Written", Message: "every page is written", ObservedGeneration: book.Generation})
	return ctrl.Result{}, r.Status().Update(ctx, book)
}

// SetupWithManager sets up the controller with the Manager.
func (r *GuestbookReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&webappv1.Guestbook{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&corev1.Pod{}). // it makes none yet
		Named("guestbook").
		Complete(r)
}
