// Command manager is a controller as most people write one today: a manager of controller-runtime, of which one copy
// leads. For each pod it applies a configmap that the pod owns, labels the pod, and records an event. With -checks it
// tries one by one what else a controller may ask of a server, and prints the answers.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	address := flag.String("server", "", "of the API")
	name := flag.String("name", "manager", "under which the lens and the stage see it")
	checks := flag.Bool("checks", false, "try what a controller may ask of a server, and end")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	ctx := ctrl.SetupSignalHandler()
	config := &rest.Config{Host: *address, UserAgent: *name, QPS: -1}
	run := manage
	if *checks {
		run = check
	}
	if err := run(ctx, config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// manage runs the manager until ctx is done.
func manage(ctx context.Context, config *rest.Config) error {
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Metrics:        server.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "letters", LeaderElectionNamespace: metav1.NamespaceDefault,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 ptr.To(4 * time.Second), RenewDeadline: ptr.To(3 * time.Second),
		RetryPeriod: ptr.To(time.Second),
	})
	if err != nil {
		return err
	}
	r := &reconciler{Client: manager.GetClient(), events: manager.GetEventRecorder("letters")}
	if err := ctrl.NewControllerManagedBy(manager).For(&corev1.Pod{}).Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).Complete(r); err != nil {
		return err
	}
	go func() {
		select {
		case <-manager.Elected():
			fmt.Println("leads")
		case <-ctx.Done():
		}
	}()
	return manager.Start(ctx)
}

type reconciler struct {
	client.Client
	events events.EventRecorder
}

// Reconcile does nothing for a pod that is labelled and whose configmap is there.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	pod, letter := &corev1.Pod{}, &corev1.ConfigMap{}
	if err := r.Get(ctx, request.NamespacedName, pod); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.Get(ctx, request.NamespacedName, letter); apierrors.IsNotFound(err) {
		owner := metav1apply.OwnerReference().WithAPIVersion("v1").WithKind("Pod").WithName(pod.Name).WithUID(pod.UID).
			WithController(true)
		wanted := corev1apply.ConfigMap(pod.Name, pod.Namespace).WithOwnerReferences(owner).
			WithData(map[string]string{"image": pod.Spec.Containers[0].Image})
		if err := r.Apply(ctx, wanted, client.FieldOwner("letters"), client.ForceOwnership); err != nil {
			return ctrl.Result{}, err
		}
		r.events.Eventf(pod, nil, corev1.EventTypeNormal, "Written", "Write", "wrote a letter to %s", pod.Name)
	} else if err != nil {
		return ctrl.Result{}, err
	}
	if pod.Labels["letter"] == pod.Name {
		return ctrl.Result{}, nil
	}
	before := pod.DeepCopy()
	metav1.SetMetaDataLabel(&pod.ObjectMeta, "letter", pod.Name)
	return ctrl.Result{}, r.Patch(ctx, pod, client.MergeFrom(before))
}

// check asks for one thing after the other.
func check(ctx context.Context, config *rest.Config) error {
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
		"metadata": map[string]any{"namespace": "default", "name": "web"},
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
