package controllers

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	listwatch "listwatch/chapters/09-listwatch"
	processor "listwatch/chapters/12-processor"
	informer "listwatch/chapters/13-informer"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/routine"
)

// SchedulerName is the name under which pods ask for this scheduler. A pod that names none gets it, too.
const SchedulerName = "default-scheduler"

// SchedulerOptions puts the scheduler's selector into the options of a list or watch. It is for the
// [listwatch.ListWatch] of the informer that a [SchedulerConfig] names. The selector is not "pods without a node": the
// scheduler must count all that hold, or will hold, a place on one. When a pod ends, it stops matching, and arrives
// here as DELETED although it still exists.
func SchedulerOptions(options *metav1.ListOptions) {
	options.FieldSelector = "status.phase!=Succeeded,status.phase!=Failed"
}

// StripManagedFields is a transform function for informers: it drops the part of an object that is large and that no
// controller here reads. An object that still has them is not shared yet, so it may be changed in place.
func StripManagedFields(obj any) (any, error) {
	if accessor, ok := obj.(metav1.Object); ok && accessor.GetManagedFields() != nil {
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}

// SchedulerConfig describes a [Scheduler]. Client, Pods, Nodes and Clock are required. The factories of the informers
// run them.
type SchedulerConfig struct {
	Client   *listwatch.RESTClient
	Pods     informer.TypedInformer[*corev1.Pod] // best of those that pass [SchedulerOptions]
	Nodes    informer.TypedInformer[*corev1.Node]
	Recorder *EventRecorder
	Clock    clock.WithTicker
	Probe    *probe.Probe // bound to the subject as which the scheduler appears: "scheduler"
}

// Scheduler gives every pod that has no node one, by POSTing a Binding. It does not wait to see
// its own writes: a pod counts for its node from the moment of the decision.
//
// Differs: k8s.io/kubernetes/pkg/scheduler looks at what a pod asks for and what nodes offer,
// in a framework of plugins, and binds in the background while it decides about the next pod.
// This one looks at cordons and taints only, and does not set the condition PodScheduled=False.
type Scheduler struct {
	// Set by NewScheduler, never changed.
	config SchedulerConfig
	cache  *schedulerCache
	queue  *RateLimitingQueue
	worker *worker
	pods   processor.Registration // the scheduler's, with its informer of pods
}

// NewScheduler adds the scheduler to the handlers of its informer, as upstream's constructor does, and returns it. From
// then on it notes what it is told; it acts on nothing before [Scheduler.Run]. The error is the informer's, which may
// have stopped.
func NewScheduler(config SchedulerConfig) (*Scheduler, error) {
	s := &Scheduler{
		config: config,
		cache:  newSchedulerCache(),
		queue:  NewRateLimitingQueue(config.Clock, config.Probe),
	}
	s.worker = &worker{queue: s.queue, reconciler: s, probe: config.Probe}
	options := informer.HandlerOptions{}
	if config.Probe != nil {
		// not the scheduler's own name: the listener ends before its queue
		options.Name = config.Probe.ID() + "-handler"
	}
	var err error
	if s.pods, err = config.Pods.AddTypedEventHandler(s, options); err != nil {
		return nil, fmt.Errorf("make scheduler: %w", err)
	}
	return s, nil
}

// Run schedules pods until ctx is done and all its goroutines have ended. It does not begin before the informers have
// shown it every pod and node there is: until then it would take full nodes for empty ones.
func (s *Scheduler) Run(ctx context.Context) {
	var g routine.Group
	g.Go(ctx, "scheduler.waitingLoop", s.queue.Run)
	nodes := follow(s.config.Nodes.Informer(), s.nodeChanged)
	if informer.WaitFor(ctx, s.pods.HasSyncedChecker(), nodes) {
		g.Go(ctx, "scheduler.worker", s.worker.run)
	}
	g.Wait() // The handler stays where it is: keys that it adds from now on are ignored.
}

// OnAdd is called by the informer for a pod that has come into view.
func (s *Scheduler) OnAdd(pod *corev1.Pod, _ bool) { s.see(pod) }

// OnUpdate is called by the informer for a pod that has changed, or that is only shown again.
func (s *Scheduler) OnUpdate(_, pod *corev1.Pod) { s.see(pod) }

// see does what every event handler should: it notes the key and returns. Whether there is
// anything to do is for the worker to find out, when it looks.
func (s *Scheduler) see(pod *corev1.Pod) {
	key := keyOf(pod)
	if podIsTerminal(pod) { // an informer without the selector shows these too
		s.cache.remove(key)
		return
	}
	s.cache.update(key, pod.Spec.NodeName)
	if s.responsible(pod) {
		s.queue.Add(key)
	}
}

// OnDelete is called by the informer for a pod that is gone, or has ended, or whose end was missed. The key is known in
// each case.
func (s *Scheduler) OnDelete(deleted processor.DeletedObject[*corev1.Pod]) {
	s.cache.remove(deleted.GetKey())
}

// nodeChanged is called by the informer of nodes; node is nil if it is gone.
func (s *Scheduler) nodeChanged(old, node *corev1.Node) {
	if node == nil {
		s.cache.removeNode(old.Name)
		return
	}
	for _, key := range s.cache.setNode(node) {
		s.queue.Add(key)
	}
}

// responsible reports whether a pod waits for this scheduler.
func (s *Scheduler) responsible(pod *corev1.Pod) bool {
	name := pod.Spec.SchedulerName
	waits := pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && !podIsTerminal(pod) &&
		len(pod.Spec.SchedulingGates) == 0
	return waits && (name == "" || name == SchedulerName)
}

// reconcile gives one pod a node if it still needs one.
func (s *Scheduler) reconcile(ctx context.Context, key string) (outcome, error) {
	namespace, name, _ := strings.Cut(key, "/")
	pod, err := s.config.Pods.Lister().Namespace(namespace).Get(name)
	if err != nil { // NotFound: a lister has no other error
		return outcome{did: key + " is gone"}, nil
	}
	if !s.responsible(pod) {
		return outcome{did: fmt.Sprintf("%s is on %s: nothing to do", key, pod.Spec.NodeName)},
			nil
	}
	recorder, source := s.config.Recorder, corev1.EventSource{Component: SchedulerName}
	node, why := s.cache.assume(key, pod)
	switch {
	case why != "":
		// No error: the key comes back when a node changes.
		recorder.Event(source, pod, corev1.EventTypeWarning, "FailedScheduling", "%s", why)
		return outcome{did: fmt.Sprintf("%s has to wait: %s", key, why)}, nil
	case node == "":
		// It is not tried again: if the informer shows that it has none, the key comes back.
		return outcome{did: key + " has been given a node already: nothing to do"}, nil
	}
	err = s.bind(ctx, pod, node)
	if err == nil {
		recorder.Event(source, pod, corev1.EventTypeNormal, "Scheduled",
			"Successfully assigned %s to %s", key, node)
		return outcome{did: fmt.Sprintf("%s is bound to %s", key, node), wrote: 1}, nil
	}
	s.cache.forget(key)
	if apierrors.IsNotFound(err) {
		return outcome{did: key + " is gone"}, nil
	}
	// Most likely a conflict: another scheduler bound the pod first and our cache does not know
	// yet, or the pod is another one of the same name. The error is not looked into. The key
	// comes back, and then the cache decides.
	return outcome{}, fmt.Errorf("bind %s to %s: %w", key, node, err)
}

// bind writes the decision down. A Binding is not an object that a client can read: the server takes it as the order to
// set the pod's node, and refuses if the pod has one. The UID makes sure that it is still the pod we decided about.
func (s *Scheduler) bind(ctx context.Context, pod *corev1.Pod, node string) error {
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}
	return s.config.Client.Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("binding").
		Body(binding).Do(ctx).Error()
}

// keyOf returns the key of an object that has a namespace, as [reflector.MetaNamespaceKeyFunc] does for any object.
func keyOf(obj metav1.Object) string { return obj.GetNamespace() + "/" + obj.GetName() }

// SchedulerSnapshot is the state of a scheduler at one moment.
type SchedulerSnapshot struct {
	Nodes map[string]int `json:"nodes"` // how many pods each node holds, assumed ones included
	Queue QueueSnapshot  `json:"queue"`
}

// Snapshot returns the state of the scheduler.
func (s *Scheduler) Snapshot() SchedulerSnapshot {
	return SchedulerSnapshot{Nodes: s.cache.counts(), Queue: s.queue.Snapshot()}
}
