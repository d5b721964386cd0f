package scenario

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	reflector "listwatch/chapters/03-reflector"
	listwatch "listwatch/chapters/09-listwatch"
	deltafifo "listwatch/chapters/10-deltafifo"
	"listwatch/internal/probe"
)

var twoQueues = Story{
	ID:      "two-queues",
	Title:   "RealFIFO against DeltaFIFO",
	Symptom: "“My handler gets a's third change before b's first. Does the ring's order not hold?”",
	Watch:   "Two more reflectors on the same pods, one with a RealFIFO, one with a DeltaFIFO. The story empties the queues when all changes are in.",
	Chapter: "10-deltafifo",
	Beats:   beatsOfTwoQueues,
	play:    playTwoQueues,
}

// turns is how often each of the two pods is changed.
const turns = 4

func playTwoQueues(s *stagehand) (string, error) {
	a, b := s.name(0), s.name(1)
	for _, name := range []string{a, b} {
		s.create(name, nowhere, nil)
	}
	queues := s.fill()
	for name := range queues {
		s.await("the first state in "+name, of(probe.ReflectorSynced, name))
	}
	s.step("two reflectors hold the first state in a queue of either age")
	var last uint64
	for turn := range turns {
		for _, name := range []string{a, b} {
			rv := s.relabel(name, "turn", fmt.Sprint(turn+1))
			last = rv
		}
	}
	s.step("changed a and b in turn, %d times each", turns)
	orders := map[string]string{}
	for _, name := range []string{realQueue, deltaQueue} {
		in := s.await("the last change in "+name, func(r *probe.Record) bool {
			return r.Point == probe.FIFOAdded && r.Subject == name && r.RV == last
		})
		s.key = max(s.key, in.Seq)
	}
	for _, name := range []string{realQueue, deltaQueue} {
		order := drain(queues[name])
		orders[name] = order
		s.step("%s gives %s", name, order)
	}
	if want := "a1 b1 a2 b2 a3 b3 a4 b4"; orders[realQueue] != want {
		return "", fmt.Errorf("RealFIFO gave %s, want %s", orders[realQueue], want)
	}
	if want := "a1 a2 a3 a4 b1 b2 b3 b4"; orders[deltaQueue] != want {
		return "", fmt.Errorf("DeltaFIFO gave %s, want %s", orders[deltaQueue], want)
	}
	return fmt.Sprintf("While no consumer took anything, both queues received: %s. RealFIFO, the queue of today, gave just that. DeltaFIFO gave %s: it keeps one entry for each key, and its consumer takes all changes of a key at once. Both keep the order of each key.",
		orders[realQueue], orders[deltaQueue]), nil
}

const (
	realQueue  = "informer-real"
	deltaQueue = "informer-delta"
)

// fill runs a reflector into a queue of each kind, for the length of the story. No consumer takes anything out of them.
func (s *stagehand) fill() map[string]deltafifo.Queue {
	queues := map[string]deltafifo.Queue{
		realQueue: realFIFO(s, realQueue),
		deltaQueue: deltafifo.NewDeltaFIFO(deltafifo.DeltaFIFOOptions{
			Name: deltaQueue, Probe: s.Probe.Resource("pods").Subject(deltaQueue), EmitDeltaTypeReplaced: true,
		}),
	}
	for name, queue := range queues {
		s.reflect(name, "listwatch-"+name, queue, true)
	}
	return queues
}

// reflect runs one more reflector of the story's pods into a queue, for the length of the story.
func (s *stagehand) reflect(name, userAgent string, queue deltafifo.Queue, useWatchList bool) {
	p := s.Probe.Resource("pods").Subject(name)
	r := reflector.New(reflector.Config{
		Name: name, ExpectedType: &corev1.Pod{}, Store: queue, Clock: s.Clock, Probe: p, UseWatchList: useWatchList,
		ListerWatcher: listwatch.NewListWatch(s.Pipeline.Client.NewClient(userAgent, p, nil), "pods", namespace, s.own),
	})
	s.group.Go(s.ctx, "reflector.Run", r.Run)
	s.undo = append(s.undo, queue.Close)
}

func (s *stagehand) own(options *metav1.ListOptions) { options.LabelSelector = label + "=" + s.id }

// drain takes everything out of a queue and returns the changes of the story in the order in which they came: "a1" is the
// state of pod a with turn=1.
func drain(queue deltafifo.Queue) string {
	var order []string
	for queue.Snapshot().Len > 0 {
		must(queue.Pop(func(deltas deltafifo.Deltas, _ bool) error {
			order = append(order, turnsOf(deltas)...)
			return nil
		}))
	}
	return strings.Join(order, " ")
}

func turnsOf(deltas deltafifo.Deltas) (order []string) {
	for _, delta := range deltas {
		if pod, ok := delta.Object.(*corev1.Pod); ok && pod.Labels["turn"] != "" {
			order = append(order, pod.Name[len(pod.Name)-1:]+pod.Labels["turn"])
		}
	}
	return order
}
