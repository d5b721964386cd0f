package scenario

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	reflector "listwatch/chapters/03-reflector"
	deltafifo "listwatch/chapters/10-deltafifo"
	indexer "listwatch/chapters/11-indexer"
	processor "listwatch/chapters/12-processor"
	informer "listwatch/chapters/13-informer"
	"listwatch/internal/observe/routine"
)

// own returns a function that selects the story's pods in options or, if labels is not "", the pods with these labels.
func (s *runner) own(labels string) func(*metav1.ListOptions) {
	return func(options *metav1.ListOptions) { options.LabelSelector = cmp.Or(labels, s.ownLabel()) }
}

func inform(s *runner, a *args) (answer, error) {
	name := a.word(0)
	resync, _ := time.ParseDuration(a.values["resync"]) // 0: no resync
	p := s.Probe.Resource("pods").Subject(name)
	client := s.Pipeline.Client.NewClient("listwatch-"+name, p)
	i := informer.NewSharedIndexInformer(informer.Config{
		Name: name, ExampleObject: &corev1.Pod{}, Clock: s.Clock, Probe: p, UseWatchList: true, ResyncPeriod: resync,
		ListerWatcher: client.ListWatch("pods", namespace, s.own(a.values["labels"])),
	})
	_, err := i.AddEventHandlerWithOptions(processor.ResourceEventHandlerFuncs{}, informer.HandlerOptions{
		Name: a.word(1)})
	if err == nil {
		s.group.Go(s.ctx, "informer", i.Run)
	}
	return answer{}, err
}

func reflectPods(s *runner, a *args) (answer, error) {
	name, agent := a.word(0), "listwatch-"+a.word(0)
	p := s.Probe.Resource("pods").Subject(name)
	var queue deltafifo.Queue = deltafifo.NewRealFIFO(nil, p)
	if a.word(2) == "delta" {
		queue = deltafifo.NewDeltaFIFO(nil, nil, p)
	}
	if a.word(1) == "client" {
		agent = "story-" + s.story.ID
	}
	r := reflector.New(reflector.Config{
		Name: name, ExpectedType: &corev1.Pod{}, Store: queue, Clock: s.Clock, Probe: p,
		UseWatchList:  a.word(1) != "list",
		ListerWatcher: s.Pipeline.Client.NewClient(agent, p).ListWatch("pods", namespace, s.own("")),
	})
	s.queues[name] = queue
	s.group.Go(s.ctx, "reflector.Run", r.Run)
	return answer{}, nil
}

// drain empties a queue and returns the story's changes in the queue's order: "a1" is pod a with turn=1.
func drain(s *runner, a *args) (answer, error) {
	queue := s.queues[a.word(0)]
	var order []string
	for queue.Snapshot().Len > 0 {
		err := queue.Pop(func(deltas deltafifo.Deltas, _ bool) error {
			for _, delta := range deltas {
				if pod, ok := delta.Object.(*corev1.Pod); ok && pod.Labels["turn"] != "" {
					order = append(order, pod.Name[len(pod.Name)-1:]+pod.Labels["turn"])
				}
			}
			return nil
		})
		if err != nil {
			return answer{}, err
		}
	}
	return answer{value: strings.Join(order, " ")}, nil
}

func watchers(s *runner, a *args) (answer, error) {
	for i := range a.number(0) {
		stream, err := s.Pipeline.Server.Pods().Watch(s.ctx, "", &internalversion.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node(i)), ResourceVersion: "0",
		})
		if err != nil {
			return answer{}, err
		}
		s.streams[node(i)] = stream
		s.ends = append(s.ends, stream.Stop)
	}
	return answer{value: strconv.Itoa(len(s.Pipeline.Server.Cacher("pods").Snapshot().Watchers))}, nil
}

func kubelets(s *runner, a *args) (answer, error) {
	for i := range a.number(0) {
		s.kubelet(i, a.number(0), i < a.number(1))
		// Clients that start one by one make the recording compress better.
		if err := routine.Sleep(s.ctx, s.Clock, tick); err != nil {
			return answer{}, err
		}
	}
	return answer{}, nil
}

func node(n int) string { return fmt.Sprintf("story-node-%d", n) }

// kubelet starts the reflector of the i-th of n kubelets; a plain one requests no bookmarks.
func (s *runner) kubelet(i, n int, plain bool) {
	which := func(options *metav1.ListOptions) {
		options.FieldSelector = "spec.nodeName=" + node(i)
		options.AllowWatchBookmarks = options.AllowWatchBookmarks && !plain
		if options.TimeoutSeconds != nil {
			*options.TimeoutSeconds = 600 // not random: a thousand random numbers would double the recording
		}
	}
	client := s.Pipeline.Client.NewClient("kubelet", nil)
	r := reflector.New(reflector.Config{
		Name: node(i), ExpectedType: &corev1.Pod{}, Store: indexer.NewIndexer(indexer.Config{}), Clock: s.Clock,
		Jitter:        func() float64 { return float64(i) / float64(n) },
		ListerWatcher: client.ListWatch("pods", "", which),
	})
	s.group.Go(s.ctx, "reflector.Run", r.Run)
}
