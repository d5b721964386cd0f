// Command checks is a client on controller-runtime that tries, one by one, the requests that a controller may send, and
// prints the results. With -manage it is a manager that takes part in a leader election.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

func main() {
	address := flag.String("server", "", "the API server's `URL`")
	manages := flag.Bool("manage", false, "write the pages of books, until a signal arrives")
	flag.Parse()
	config := &rest.Config{Host: *address, UserAgent: "checks", QPS: -1}
	run := check
	if *manages {
		run = manage
	}
	if err := run(config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// check tries one request after the other, and prints each result.
func check(config *rest.Config) error {
	ctx := context.Background()
	c, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		return err
	}
	say := func(what string, err error) {
		if err != nil {
			fmt.Printf("%s: %s %v\n", what, apierrors.ReasonForError(err), err)
			return
		}
		fmt.Printf("%s: ok\n", what)
	}
	named := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}
	}
	watching, err := c.Watch(ctx, &corev1.SecretList{}, client.InNamespace(metav1.NamespaceDefault))
	say("watch", err)
	secret := &corev1.Secret{ObjectMeta: named("s"), StringData: map[string]string{"a": "b"}}
	say("create a secret", c.Create(ctx, secret))
	fmt.Println("told of it:", (<-watching.ResultChan()).Type, len(secret.Data), "entry of", secret.Type)
	watching.Stop()
	say("create it again", c.Create(ctx, &corev1.Secret{ObjectMeta: named("s")}))
	say("dry run", client.NewDryRunClient(c).Delete(ctx, secret))
	stale := secret.DeepCopy()
	did, err := controllerutil.CreateOrUpdate(ctx, c, secret, func() error {
		secret.Labels = map[string]string{"x": "y"}
		return nil
	})
	say(fmt.Sprint("create or update: ", did), err)
	say("update a stale one", c.Update(ctx, stale))

	for _, owner := range []string{"one", "two"} {
		cm := corev1apply.ConfigMap("applied", metav1.NamespaceDefault).WithData(map[string]string{"owner": owner})
		say("apply as "+owner, c.Apply(ctx, cm, client.FieldOwner(owner)))
	}
	free := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{"namespace": "default", "name": "untyped"},
		"spec":     map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}}}
	say("create a service without its type", c.Create(ctx, free))
	meta := &metav1.PartialObjectMetadataList{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	say("list metadata", c.List(ctx, meta, client.InNamespace(metav1.NamespaceDefault)))

	pod := &corev1.Pod{ObjectMeta: named("gated"), Spec: corev1.PodSpec{
		SchedulingGates: []corev1.PodSchedulingGate{{Name: "example.com/wait"}},
		Containers:      []corev1.Container{{Name: "c", Image: "i"}}}}
	say("create a gated pod", c.Create(ctx, pod))
	binding := &corev1.Binding{ObjectMeta: named("gated"), Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}
	say("bind it", c.SubResource("binding").Create(ctx, pod, binding))
	before := pod.DeepCopy()
	pod.Spec.SchedulingGates = nil
	say("open the gate", c.Patch(ctx, pod, client.MergeFrom(before)))
	before = pod.DeepCopy()
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: "example.com/x", Status: "True"})
	say("patch its status", c.Status().Patch(ctx, pod, client.MergeFrom(before)))
	say("delete another of its name", c.Delete(ctx, pod, client.Preconditions{UID: ptr.To(secret.UID)}))
	say("bind it now", c.SubResource("binding").Create(ctx, pod, binding))
	say("evict it", c.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{ObjectMeta: named("gated"),
		DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: new(int64)}}))
	say("get it", c.Get(ctx, client.ObjectKeyFromObject(pod), pod))
	return c.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(metav1.NamespaceDefault))
}

// written is the annotation that holds a book's number of pages.
const written = "example.com/written"

// manage runs a manager until a signal arrives. The manager works only while it leads.
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
		Owns(&corev1.Pod{}). // books own no pods, but the watch appears on the stage of pods
		Complete(&writer{m.GetClient(), m.GetEventRecorder("books")})
	if err != nil {
		return err
	}
	return m.Start(ctrl.SetupSignalHandler())
}

// writer writes a config map for each page of a book. The book is a config map, too.
type writer struct {
	client.Client
	events events.EventRecorder
}

// Reconcile creates or updates a book's pages, with an event for each, and annotates the book with their number.
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
