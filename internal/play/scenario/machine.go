package scenario

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	reflector "listwatch/chapters/03-reflector"
	listwatch "listwatch/chapters/09-listwatch"
	deltafifo "listwatch/chapters/10-deltafifo"
	indexer "listwatch/chapters/11-indexer"
	processor "listwatch/chapters/12-processor"
	informer "listwatch/chapters/13-informer"
	controllers "listwatch/chapters/14-controllers"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/routine"
)

// ---- informers and reflectors, for the length of the story

// own returns options that select the story's pods, or those with a label.
func (s *stagehand) own(labels string) func(*metav1.ListOptions) {
	return func(options *metav1.ListOptions) {
		options.LabelSelector = s.ownLabel()
		if labels != "" {
			options.LabelSelector = labels
		}
	}
}

func inform(s *stagehand, a *args) (answer, error) {
	i, err := s.informer(a, "listwatch-"+a.word(0))
	if err == nil {
		s.group.Go(s.ctx, "informer", i.Run)
	}
	return answer{}, err
}

func (s *stagehand) informer(a *args, agent string) (*informer.SharedIndexInformer, error) {
	name := a.word(0)
	resync, _ := time.ParseDuration(a.values["resync"]) // 0: none
	resource, called, example := "pods", "pods", runtime.Object(&corev1.Pod{})
	path := a.values["path"] // "/apis/GROUP/VERSION"
	if path != "" {
		resource, example = a.values["resource"], &unstructured.Unstructured{}
		called = resource + "." + strings.Split(path, "/")[2]
	}
	p := s.Probe.Resource(called).Subject(name)
	client := s.Pipeline.Client.NewClient(agent, p, nil)
	if path != "" {
		client = client.WithAPIPath(path).Untyped()
	}
	i := informer.NewSharedIndexInformer(informer.Config{
		Name: name, ExampleObject: example, Clock: s.Clock, Probe: p, UseWatchList: true, ResyncPeriod: resync,
		ListerWatcher: listwatch.NewListWatch(client, resource, namespace, s.own(a.values["labels"])),
	})
	_, err := i.AddEventHandlerWithOptions(processor.ResourceEventHandlerFuncs{}, informer.HandlerOptions{
		Name: a.word(1)})
	return i, err
}

const leaseDuration = 3 * time.Second // a viewer does not wait for upstream's 15 s

// candidate runs one of several copies of a controller, which has its informer while it leads. The last one to end
// deletes the lease.
func candidate(s *stagehand, a *args) (answer, error) {
	agent := "story-" + s.story.ID + "-" + a.word(0)
	client := s.Pipeline.Client.NewClient(agent, nil, nil)
	elector := controllers.NewLeaderElector(controllers.LeaderElectorConfig{
		Client: client, Namespace: namespace, Name: s.story.ID, Identity: a.word(0), LeaseDuration: leaseDuration,
		Clock: s.Clock, Lead: func(ctx context.Context) {
			if i, err := s.informer(a, agent); err == nil { // names that a test has read
				i.Run(ctx)
			}
		},
	})
	s.group.Go(s.ctx, "candidate", func(ctx context.Context) {
		for ctx.Err() == nil {
			elector.Run(ctx)
		}
		leases := client.WithAPIPath("/apis/coordination.k8s.io/v1").Delete().Namespace(namespace).Resource("leases")
		_ = leases.Name(s.story.ID).Do(s.Writing).Error() // the other one may have done so
	})
	return answer{}, nil
}

// reflectPods runs a reflector into a queue from which nothing is taken: NAME list|stream (delta). The reflector that
// streams is the story's client.
func reflectPods(s *stagehand, a *args) (answer, error) {
	name, agent := a.word(0), "listwatch-"+a.word(0)
	p := s.Probe.Resource("pods").Subject(name)
	var queue deltafifo.Queue = deltafifo.NewRealFIFO(deltafifo.RealFIFOOptions{Name: name, Probe: p})
	if a.word(2) == "delta" {
		queue = deltafifo.NewDeltaFIFO(deltafifo.DeltaFIFOOptions{Name: name, Probe: p})
	}
	if a.word(1) == "client" {
		agent = "story-" + s.story.ID
	}
	r := reflector.New(reflector.Config{
		Name: name, ExpectedType: &corev1.Pod{}, Store: queue, Clock: s.Clock, Probe: p,
		UseWatchList:  a.word(1) != "list",
		ListerWatcher: listwatch.NewListWatch(s.Pipeline.Client.NewClient(agent, p, nil), "pods", namespace, s.own("")),
	})
	s.queues[name] = queue
	s.group.Go(s.ctx, "reflector.Run", r.Run)
	return answer{}, nil
}

// drain returns the changes of the story in the order in which they came: "a1" is the state of pod a with turn=1.
func drain(s *stagehand, a *args) (answer, error) {
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
	return says(strings.Join(order, " ")), nil
}

// ---- requests that wait

// waiting is a request that was sent on a goroutine of its own.
type waiting struct {
	answer
	err  error
	took time.Duration
}

func later(s *stagehand, a *args) (answer, error) {
	done := make(chan waiting, 1) // sent once, by the goroutine; room for it
	s.later[a.name] = done
	began := s.Clock.Now()
	do, rest := map[string]verb{"list": list, "post": postAgain}[a.all[0]], newArgs("", a.all[1:])
	s.group.Go(s.ctx, "story.request", func(context.Context) {
		got, err := do(s, rest) // these two touch nothing that the story's goroutine touches
		done <- waiting{got, err, s.Clock.Since(began)}
	})
	return answer{}, nil
}

func join(s *stagehand, a *args) (answer, error) {
	got := <-s.later[a.word(0)]
	if got.fields == nil {
		got.fields = map[string]string{}
	}
	got.fields["took"] = rounded(got.took)
	return got.answer, got.err
}

// ---- the machine of a world of its own

func recount(s *stagehand, _ *args) (answer, error) {
	s.Pipeline.Recount("pods", "cacher", fold.MaxRows)
	s.Pipeline.Recount("pods", "informer", fold.MaxRows)
	return answer{}, nil
}

// machine returns the verb of a part of the machine.
func machine(part string) verb {
	return func(s *stagehand, a *args) (answer, error) {
		return answer{}, s.Machine.Do(s.ctx, append([]string{part}, a.words...)...)
	}
}

// ---- many clients

// crowd opens N watches, each for the pods of one node: "watchers N" at the registry; "kubelets N M" as kubelets do, of
// which M ask for no bookmarks. It returns how many watchers of pods there are.
func crowd(s *stagehand, a *args) (answer, error) {
	n, plain := a.number(1), a.number(2)
	for i := range n {
		if a.word(0) == "kubelets" {
			s.kubelet(i, n, i < plain)
			// one after the other, which is easier to compress, too
			if err := routine.Sleep(s.ctx, s.Clock, tick); err != nil {
				return answer{}, err
			}
			continue
		}
		stream, err := s.Pipeline.Server.Pods().Watch(s.ctx, "", &internalversion.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node(i)), ResourceVersion: "0",
		})
		if err != nil {
			return answer{}, err
		}
		s.streams[node(i)] = stream
		s.ends = append(s.ends, stream.Stop)
	}
	for _, each := range s.Pipeline.Server.Cachers() {
		if each.Resource() == "pods" {
			return says(len(each.Snapshot().Watchers)), nil
		}
	}
	return answer{}, nil
}

func node(n int) string { return fmt.Sprintf("story-node-%d", n) }

// kubelet runs the reflector of the i-th of n kubelets. plain: it asks for no bookmarks.
func (s *stagehand) kubelet(i, n int, plain bool) {
	which := func(options *metav1.ListOptions) {
		options.FieldSelector = "spec.nodeName=" + node(i)
		options.AllowWatchBookmarks = options.AllowWatchBookmarks && !plain
		if options.TimeoutSeconds != nil {
			*options.TimeoutSeconds = 600 // a thousand numbers by chance would make the recording twice as large
		}
	}
	client := s.Pipeline.Client.NewClient("kubelet", nil, nil)
	r := reflector.New(reflector.Config{
		Name: node(i), ExpectedType: &corev1.Pod{}, Store: indexer.NewIndexer(indexer.Config{}), Clock: s.Clock,
		Jitter:        func() float64 { return float64(i) / float64(n) },
		ListerWatcher: listwatch.NewListWatch(client, "pods", "", which),
	})
	s.group.Go(s.ctx, "reflector.Run", r.Run)
}
