package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"

	registry "listwatch/chapters/07-registry"
	handlers "listwatch/chapters/08-handlers"
)

// podLog is the log subresource of pods. No container runs, so there is no kubelet to ask: the lines are made from what
// the pod's status says, be the writer our kubelet or another program.
//
// Upstream: k8s.io/kubernetes/pkg/registry/core/pod/rest/log.go: LogREST
// Differs: the options sinceTime, sinceSeconds, limitBytes, stream and insecureSkipTLSVerifyBackend change nothing:
// there are three lines at most.
type podLog struct{ pods *registry.Store }

// Describe returns what is known about pods.
func (l podLog) Describe() *registry.Resource { return l.pods.Describe() }

// New returns an empty pod.
func (podLog) New() runtime.Object { return &corev1.Pod{} }

// installLog adds the route of pods' logs, which are text and no object, and may go on for as long as the pod lives.
func installLog(server *handlers.Server, s *handlers.Scope) {
	storage, ok := s.Storage.(podLog)
	if !ok {
		return
	}
	server.Handle(s, http.MethodGet, s.ItemPath(), "connect", func(w http.ResponseWriter, r *http.Request) {
		namespace, name := s.NamespaceAndName(r)
		answer := &logWriter{w: w, shutdown: server.Shutdown}
		if err := storage.serve(answer, r, namespace, name); err != nil {
			handlers.WriteError(w, r, err)
		}
	})
	s.Verbs = append(s.Verbs, "get")
}

// logLine is one line of a log.
type logLine struct {
	at   time.Time
	text string
}

// linesOf returns the log of a container as its status tells it.
func linesOf(pod *corev1.Pod, status *corev1.ContainerStatus) (lines []logLine) {
	started, ended := time.Time{}, status.State.Terminated
	if running := status.State.Running; running != nil {
		started = running.StartedAt.Time
	} else if ended != nil {
		started = ended.StartedAt.Time
	}
	lines = []logLine{
		{started, "this container is not real: nothing runs here, and the status of its pod is all that is known"},
		{started, fmt.Sprintf("%s: image %s started on %s", status.Name, status.Image, pod.Spec.NodeName)},
	}
	if ended != nil {
		lines = append(lines, logLine{ended.FinishedAt.Time, fmt.Sprintf("%s: ended with exit code %d (%s)",
			status.Name, ended.ExitCode, ended.Reason)})
	}
	return lines
}

// status returns the status of the container that is meant. Errors: 400, as upstream's and its kubelet's.
func (o *logOptions) status(pod *corev1.Pod) (*corev1.ContainerStatus, error) {
	var names []string
	for _, each := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		names = append(names, each.Name)
	}
	name := o.container
	switch {
	case name == "" && len(names) > 1:
		return nil,
			apierrors.NewBadRequest(fmt.Sprintf("a container name must be specified for pod %s, choose one of: %v",
				pod.Name, names))
	case name == "":
		name = names[0]
	case !slices.Contains(names, name):
		return nil, apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", name, pod.Name))
	}
	if o.previous {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("previous terminated container %q in pod %q not found", name,
			pod.Name))
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
		if waiting := status.State.Waiting; waiting != nil && waiting.Reason != "" {
			reason = waiting.Reason
		}
	}
	return nil, apierrors.NewBadRequest(fmt.Sprintf("container %q in pod %q is waiting to start: %s", name, pod.Name,
		reason))
}

// logOptions are what a client asks for.
type logOptions struct {
	container                    string
	follow, previous, timestamps bool
	tail                         int // lines of what is there; negative: all
}

// newLogOptions reads the options. Errors: 400 for what cannot be read, 422 for what makes no sense.
//
// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidatePodLogOptions
func newLogOptions(name string, query url.Values) (o *logOptions, err error) {
	set := func(option string) bool {
		return query.Has(option) && query.Get(option) != "false" && query.Get(option) != "0"
	}
	o = &logOptions{container: query.Get("container"), follow: set("follow"), previous: set("previous"),
		timestamps: set("timestamps"), tail: -1}
	if !query.Has("tailLines") {
		return o, nil
	}
	if o.tail, err = strconv.Atoi(query.Get("tailLines")); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("tailLines: %v", err))
	}
	if o.tail < 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "PodLogOptions"}, name, field.ErrorList{
			field.Invalid(field.NewPath("tailLines"), o.tail, "must be greater than or equal to 0")})
	}
	return o, nil
}

// serve writes the log of a container. With follow it goes on until the container has ended, the pod is gone, or either
// side ends.
func (l podLog) serve(answer *logWriter, r *http.Request, namespace, name string) error {
	obj, err := l.pods.Get(r.Context(), namespace, name, &metav1.GetOptions{})
	if err != nil {
		return err
	}
	pod := obj.(*corev1.Pod)
	o, err := newLogOptions(name, r.URL.Query())
	if err != nil {
		return err
	}
	answer.w.Header().Set("Content-Type", "text/plain")
	if pod.Spec.NodeName == "" { // upstream has no kubelet to ask, and answers with nothing
		return nil
	}
	status, err := o.status(pod)
	if err != nil {
		return err
	}
	answer.options = o
	if ended := answer.write(pod, status); ended || !o.follow {
		return nil
	}
	o.tail = -1 // the lines that were there are written
	events, err := l.pods.Watch(r.Context(), namespace, &metainternalversion.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", name), ResourceVersion: pod.ResourceVersion})
	if err == nil { // otherwise the answer has begun, and ends here
		defer events.Stop()
		answer.follow(r.Context(), events)
	}
	return nil
}

// logWriter writes one answer. It belongs to one request.
type logWriter struct {
	w        http.ResponseWriter
	shutdown <-chan struct{} // closed when the server ends
	options  *logOptions
	lines    int // the log's, written or left out
}

// write writes the lines that have come, and reports whether there will be no more.
func (a *logWriter) write(pod *corev1.Pod, status *corev1.ContainerStatus) (ended bool) {
	all := linesOf(pod, status)
	fresh := all[min(a.lines, len(all)):]
	a.lines = len(all)
	if tail := a.options.tail; tail >= 0 {
		fresh = fresh[max(0, len(fresh)-tail):]
	}
	for _, line := range fresh {
		text := line.text + "\n"
		if a.options.timestamps {
			text = line.at.UTC().Format(time.RFC3339Nano) + " " + text
		}
		if _, err := a.w.Write([]byte(text)); err != nil {
			return true
		}
	}
	_ = http.NewResponseController(a.w).Flush() // the error is that there is nothing to flush
	return status.State.Terminated != nil
}

// follow writes what comes.
func (a *logWriter) follow(ctx context.Context, events watch.Interface) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.shutdown:
			return
		case event, ok := <-events.ResultChan():
			obj := event.Object
			if shared, wrapped := obj.(runtime.CacheableObject); wrapped { // with other watchers
				obj = shared.GetObject()
			}
			pod, isPod := obj.(*corev1.Pod)
			if !ok || !isPod || event.Type == watch.Deleted {
				return
			}
			status, err := a.options.status(pod)
			if err != nil || a.write(pod, status) {
				return
			}
		}
	}
}
