package apiserver

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"

	registry "listwatch/chapters/07-registry"
	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/kube/resources"
	"listwatch/internal/kube/scheme"
)

// addPodPaths adds the paths for pods that chapter 08 lacks, if the server has pods.
func addPodPaths(storages map[string]handlers.Storage) {
	if store, ok := storages["pods"].(*registry.Store); ok {
		storages["bindings"] = bindings{&registry.BindingREST{Store: store}}
		storages["pods/eviction"] = eviction{store}
		storages["pods/log"] = podLog{store}
	}
}

// bindings is the older path of bindings. The pod's name is in the object instead of the path.
//
// Upstream: k8s.io/kubernetes/pkg/registry/core/pod/storage/storage.go: LegacyBindingREST
type bindings struct{ *registry.BindingREST }

func (bindings) Describe() *registry.Resource {
	return &registry.Resource{GroupVersion: corev1.SchemeGroupVersion, Name: "bindings", Kind: "Binding",
		Namespaced: true}
}

// Create takes the pod's name from obj, and calls [registry.BindingREST.Create].
func (b bindings) Create(ctx context.Context, namespace string, obj runtime.Object,
	options *metav1.CreateOptions) (runtime.Object, error) {
	return b.BindingREST.Create(ctx, namespace, obj.(metav1.Object).GetName(), obj, options)
}

// eviction is the eviction subresource of pods, with which kubectl drain removes pods from a node.
//
// Differs: it only deletes the pod, with the given options. k8s.io/kubernetes/pkg/registry/core/pod/storage also
// checks disruption budgets, and writes the reason for the eviction into the pod.
type eviction struct{ pods *registry.Store }

func (e eviction) Describe() *registry.Resource { return e.pods.Describe() }

func (eviction) New() runtime.Object { return &policyv1.Eviction{} }

// Create deletes the named pod with the options in obj. Errors: 400 if obj is not an Eviction or has another name, or
// the error of [registry.Store.Delete].
func (e eviction) Create(ctx context.Context, namespace, name string, obj runtime.Object,
	options *metav1.CreateOptions) (runtime.Object, error) {
	eviction, ok := obj.(*policyv1.Eviction)
	if !ok || eviction.Name != "" && eviction.Name != name {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("name in URL does not match name in Eviction object: %s", name))
	}
	deletion := &metav1.DeleteOptions{}
	if eviction.DeleteOptions != nil {
		deletion = eviction.DeleteOptions.DeepCopy()
	}
	deletion.DryRun = append(deletion.DryRun, options.DryRun...)
	if _, _, err := e.pods.Delete(ctx, namespace, name, deletion); err != nil {
		return nil, err
	}
	return &metav1.Status{Status: metav1.StatusSuccess, Code: 201}, nil
}

// addScales adds the paths with which kubectl scale and autoscalers change the sizes of workloads.
func addScales(storages map[string]handlers.Storage) {
	for _, name := range []string{"deployments.apps", "replicasets.apps", "statefulsets.apps"} {
		if store, ok := storages[name].(*registry.Store); ok {
			described := *store.Describe()
			described.Strategy, described.StatusStrategy = scaleStrategy{}, nil
			storages[name+"/scale"] = scale{store, &described}
		}
	}
}

// scale is the scale subresource of a kind: a view of the object's sizes and selector, in which clients set the size.
//
// Upstream: k8s.io/kubernetes/pkg/registry/apps/deployment/storage/storage.go: ScaleREST
// Differs: a write of the size is not recorded in the object's managed fields, and there is no apply.
type scale struct {
	store     *registry.Store
	described *registry.Resource // a copy of the store's, with scaleStrategy
}

var scaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale").GroupKind()

// scaleStrategy does not change a Scale.
type scaleStrategy struct{ resources.KeptStrategy }

func (scaleStrategy) Default(runtime.Object) {}

func (s scale) Describe() *registry.Resource { return s.described }

func (scale) New() runtime.Object { return &autoscalingv1.Scale{} }

func (s scale) Get(ctx context.Context, namespace, name string, options *metav1.GetOptions) (runtime.Object, error) {
	obj, err := s.store.Get(ctx, namespace, name, options)
	if err != nil {
		return nil, err
	}
	return resources.ScaleOf(obj), nil
}

// Update changes the size of an object. Errors: 422 for a negative size, or the error of [registry.Store.Update].
func (s scale) Update(ctx context.Context, namespace, name string, info registry.UpdatedObjectInfo, _ bool,
	options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	change := func(ctx context.Context, old runtime.Object) (runtime.Object, error) {
		obj, err := info(ctx, resources.ScaleOf(old))
		if err != nil {
			return nil, err
		}
		wanted := obj.(*autoscalingv1.Scale)
		if wanted.Spec.Replicas < 0 {
			return nil, apierrors.NewInvalid(scaleKind, name, field.ErrorList{field.Invalid(
				field.NewPath("spec", "replicas"), wanted.Spec.Replicas, "must be greater than or equal to 0")})
		}
		return resources.Scaled(old, wanted), nil
	}
	obj, _, err := s.store.Update(ctx, namespace, name, change, false, options)
	if err != nil {
		return nil, false, err
	}
	return resources.ScaleOf(obj), false, nil
}

// openToAll is the reason in the responses to access and rules reviews.
const openToAll = "listwatch has no authorization: every client may do everything"

// reviews returns storages for reviews of a client's own rights and identity, for kubectl auth can-i and whoami.
//
// Differs: everything is allowed, and the user is anonymous.
func reviews() map[string]handlers.Storage {
	storages := map[string]handlers.Storage{}
	for kind, gv := range map[string]schema.GroupVersion{
		"SelfSubjectAccessReview": authorizationv1.SchemeGroupVersion,
		"SelfSubjectRulesReview":  authorizationv1.SchemeGroupVersion,
		"SelfSubjectReview":       authenticationv1.SchemeGroupVersion,
	} {
		singular := strings.ToLower(kind)
		storages[singular+"s"] = review{
			&registry.Resource{GroupVersion: gv, Name: singular + "s", Kind: kind}}
	}
	return storages
}

// review answers reviews of one kind, and stores none of them.
type review struct{ resource *registry.Resource }

func (r review) Describe() *registry.Resource { return r.resource }

func (r review) New() runtime.Object {
	obj, err := scheme.Scheme.New(r.resource.GroupVersion.WithKind(r.resource.Kind))
	utilruntime.Must(err)
	return obj
}

// Create fills in the status. The error is a 400 if an access review names both a resource and a path, or neither.
func (r review) Create(_ context.Context, _ string, obj runtime.Object,
	_ *metav1.CreateOptions) (runtime.Object, error) {
	switch asked := obj.(type) {
	case *authorizationv1.SelfSubjectAccessReview:
		if (asked.Spec.ResourceAttributes == nil) == (asked.Spec.NonResourceAttributes == nil) {
			return nil, apierrors.NewBadRequest(
				fmt.Sprintf("a %s asks about either resourceAttributes or nonResourceAttributes", r.resource.Kind))
		}
		asked.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: openToAll}
	case *authorizationv1.SelfSubjectRulesReview:
		all := []string{"*"}
		asked.Status = authorizationv1.SubjectRulesReviewStatus{
			ResourceRules:    []authorizationv1.ResourceRule{{Verbs: all, APIGroups: all, Resources: all}},
			NonResourceRules: []authorizationv1.NonResourceRule{{Verbs: all, NonResourceURLs: all}},
			EvaluationError:  openToAll,
		}
	case *authenticationv1.SelfSubjectReview:
		asked.Status.UserInfo =
			authenticationv1.UserInfo{Username: "system:anonymous", Groups: []string{"system:unauthenticated"}}
	}
	return obj, nil
}

var _ handlers.Creater = review{}

// podLog is the log subresource of pods. No container runs, so there is no log to request from a kubelet: podLog makes
// the lines from the pod's status, whether our kubelet or another program wrote the status.
//
// Upstream: k8s.io/kubernetes/pkg/registry/core/pod/rest/log.go: LogREST
// Differs: sinceTime, sinceSeconds and limitBytes have no effect, because a log has at most three lines. Nor have
// stream and insecureSkipTLSVerifyBackend, because there is no stderr and no kubelet.
type podLog struct{ pods *registry.Store }

func (l podLog) Describe() *registry.Resource { return l.pods.Describe() }

func (podLog) New() runtime.Object { return &corev1.Pod{} }

// installLog adds the route of pods' logs, with a handler of its own: a log is text instead of an object, and the
// response may take as long as the pod lives.
func installLog(server *handlers.Server, s *handlers.Scope) {
	storage, ok := s.Storage.(podLog)
	if !ok {
		return
	}
	server.Handle(s, http.MethodGet, s.ItemPath(), "connect", func(w http.ResponseWriter, r *http.Request) {
		namespace, name := s.NamespaceAndName(r)
		if err := storage.serve(w, r, namespace, name, server.Shutdown); err != nil {
			handlers.WriteError(w, r, err)
		}
	})
	s.Verbs = append(s.Verbs, "get")
}

// serve writes the log of a container. With follow, it continues until the container ends, the pod is gone, serve's
// watch of the pod ends, the client disconnects, or the server shuts down.
func (l podLog) serve(w http.ResponseWriter, r *http.Request, namespace, name string, shutdown <-chan struct{}) error {
	obj, err := l.pods.Get(r.Context(), namespace, name, &metav1.GetOptions{})
	if err != nil {
		return err
	}
	pod := obj.(*corev1.Pod)
	a, err := newLogAnswer(w, name, r.URL.Query())
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain")
	if pod.Spec.NodeName == "" { // empty, as upstream's: the pod has no kubelet yet
		return nil
	}
	ended, err := a.write(pod)
	if err != nil || ended || !a.follow {
		return err
	}
	events, err := l.pods.Watch(r.Context(), namespace, &metainternalversion.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", name), ResourceVersion: pod.ResourceVersion})
	if err != nil {
		return nil // the response has begun, and ends here
	}
	defer events.Stop()
	for {
		select {
		case <-r.Context().Done():
			return nil
		case <-shutdown:
			return nil
		case event, ok := <-events.ResultChan():
			if !ok || a.ends(event) {
				return nil
			}
		}
	}
}

// logAnswer is the response to one request, with the request's options.
type logAnswer struct {
	w                            http.ResponseWriter
	container                    string
	follow, previous, timestamps bool
	tail                         int // number of last lines to begin with; negative: all
	lines                        int // lines of the log so far, including those left out
}

// newLogAnswer parses the options. Errors: 400 if tailLines is not a number, 422 if it is negative.
//
// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidatePodLogOptions
func newLogAnswer(w http.ResponseWriter, name string, query url.Values) (a *logAnswer, err error) {
	set := func(option string) bool {
		return query.Has(option) && query.Get(option) != "false" && query.Get(option) != "0"
	}
	a = &logAnswer{w: w, container: query.Get("container"), follow: set("follow"), previous: set("previous"),
		timestamps: set("timestamps"), tail: -1}
	if !query.Has("tailLines") {
		return a, nil
	}
	if a.tail, err = strconv.Atoi(query.Get("tailLines")); err != nil {
		return nil, badRequest("tailLines: %v", err)
	}
	if a.tail < 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "PodLogOptions"}, name, field.ErrorList{
			field.Invalid(field.NewPath("tailLines"), a.tail, "must be greater than or equal to 0")})
	}
	return a, nil
}

func badRequest(format string, args ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}

// status returns the status of the requested container. Errors: a 400, like those of upstream and its kubelet.
func (a *logAnswer) status(pod *corev1.Pod) (*corev1.ContainerStatus, error) {
	var names []string
	for _, each := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		names = append(names, each.Name)
	}
	name := cmp.Or(a.container, names[0])
	switch {
	case a.container == "" && len(names) > 1:
		return nil, badRequest("a container name must be specified for pod %s, choose one of: %v", pod.Name, names)
	case !slices.Contains(names, name):
		return nil, badRequest("container %s is not valid for pod %s", name, pod.Name)
	case a.previous:
		return nil, badRequest("previous terminated container %q in pod %q not found", name, pod.Name)
	}
	reason := "ContainerCreating"
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		if status.Name != name {
			continue
		}
		if status.State.Running != nil || status.State.Terminated != nil {
			return status, nil
		}
		if waiting := status.State.Waiting; waiting != nil {
			reason = cmp.Or(waiting.Reason, reason)
		}
	}
	return nil, badRequest("container %q in pod %q is waiting to start: %s", name, pod.Name, reason)
}

// linesOf returns the log of a container, made from its status.
func (a *logAnswer) linesOf(pod *corev1.Pod, status *corev1.ContainerStatus) (lines []string) {
	add := func(at metav1.Time, format string, args ...any) {
		text := fmt.Sprintf(format, args...) + "\n"
		if a.timestamps {
			text = at.UTC().Format(time.RFC3339Nano) + " " + text
		}
		lines = append(lines, text)
	}
	var started metav1.Time
	running, ended := status.State.Running, status.State.Terminated
	switch {
	case running != nil:
		started = running.StartedAt
	case ended != nil:
		started = ended.StartedAt
	}
	add(started, "this container is not real: nothing runs here, and the status of its pod is all that is known")
	add(started, "%s: image %s started on %s", status.Name, status.Image, pod.Spec.NodeName)
	if ended != nil {
		add(ended.FinishedAt, "%s: ended with exit code %d (%s)", status.Name, ended.ExitCode, ended.Reason)
	}
	return lines
}

// write writes the new lines, and reports whether the log has ended or cannot be written. The error is that of status.
func (a *logAnswer) write(pod *corev1.Pod) (ended bool, err error) {
	status, err := a.status(pod)
	if err != nil {
		return false, err
	}
	all := a.linesOf(pod, status)
	fresh := all[min(a.lines, len(all)):]
	if a.lines == 0 && a.tail >= 0 {
		fresh = fresh[max(0, len(fresh)-a.tail):]
	}
	a.lines = len(all)
	for _, line := range fresh {
		if _, err := a.w.Write([]byte(line)); err != nil {
			return true, nil
		}
	}
	_ = http.NewResponseController(a.w).Flush() // returns an error only if w cannot flush
	return status.State.Terminated != nil, nil
}

// ends writes the new lines after an event, and reports whether the log has ended.
func (a *logAnswer) ends(event watch.Event) bool {
	obj := event.Object
	if shared, wrapped := obj.(runtime.CacheableObject); wrapped { // the event is shared with other watchers
		obj = shared.GetObject()
	}
	pod, isPod := obj.(*corev1.Pod)
	if !isPod || event.Type == watch.Deleted {
		return true
	}
	ended, err := a.write(pod)
	return ended || err != nil
}
