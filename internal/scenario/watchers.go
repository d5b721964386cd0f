package scenario

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"listwatch/internal/probe"
	"listwatch/internal/sandbox"
)

var slowWatcher = Story{
	ID:      "slow-watcher",
	Title:   "A watcher that does not read is closed",
	Symptom: "“Forcing pods watcher close due to unresponsiveness: … len(c.input) = 10, len(c.result) = 10”",
	Watch:   "The new lane: result fills, then input. Then the dispatcher spends its budget while all other watchers wait, and closes the watcher.",
	Chapter: "06-cacher",
	Thread:  "kubernetes/kubernetes#125123",
	Beats:   beatsOfSlowWatcher,
	play:    playSlowWatcher,
}

func playSlowWatcher(s *stagehand) (string, error) {
	agent := ok(s.AddWatcher(sandbox.WatcherOptions{Resource: "pods", Bookmarks: true}))
	lane := s.lane(s.from, agent)
	s.step("opened a watcher: %s", lane)
	s.turn("line.stall", agent, "true")
	s.step("its client reads no more")
	s.turn("traffic.rate", "", "200")
	s.step("200 changes a second")
	forced := s.await("the end of "+lane, of(probe.WatcherForced, lane))
	s.key = forced.Seq
	s.step("%s is closed", lane)
	full := s.fullest(lane)
	s.turn("traffic.rate", "", "0")
	s.turn("line.stall", agent, "false")
	again := s.lane(forced.Seq, agent)
	s.step("its client reads again, finds the end of the stream, and comes back as %s", again)
	others := s.count(func(r *probe.Record) bool { return r.Point == probe.WatcherForced && r.Subject != lane })
	return fmt.Sprintf("%s held %d in its input and %d in its result, and its client read nothing. The dispatcher waited as long as its budget allowed and closed it; it closed %d of the others. The client came back as %s, from the last version that it had seen.",
		lane, full["input"], full["result"], others, again), nil
}

// fullest returns how full the channels of a watcher have been.
func (s *stagehand) fullest(lane string) map[string]int {
	most := map[string]int{}
	for i := range s.seen {
		if r := &s.seen[i]; r.Subject == lane {
			if queue := r.Point.Info().Queue; queue != "" {
				most[queue] = max(most[queue], r.Args[0])
			}
		}
	}
	return most
}

// watching returns how many watchers of a resource are registered with its cacher.
func (s *stagehand) watching(resource string) int {
	for _, each := range s.Pipeline.Server.Cachers() {
		if each.Resource() == resource {
			return len(each.Snapshot().Watchers)
		}
	}
	return 0
}

const nNodes = 1000

var triggerIndex = Story{
	ID:      "trigger-index",
	Title:   "A thousand nodes, two deliveries",
	Symptom: "“We have a thousand kubelets. Does each of them look at every change of every pod?”",
	Watch:   "How many watchers the dispatcher picks while a thousand are registered, each for one node.",
	Chapter: "06-cacher",
	Beats:   beatsOfTriggerIndex,
	play:    playTriggerIndex,
}

func playTriggerIndex(s *stagehand) (string, error) {
	name, from, to := s.name(0), node(17), node(423)
	s.create(name, from, nil)
	streams := make([]watch.Interface, nNodes)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	for n := range streams {
		stream := ok(s.Pipeline.Server.Pods().Watch(ctx, "", &internalversion.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node(n)), ResourceVersion: "0",
		}))
		defer stream.Stop()
		streams[n] = stream
	}
	if event := s.next(streams[17]); event.Type != watch.Added {
		return "", fmt.Errorf("the watch of %s begins with %s, want ADDED", from, event.Type)
	}
	s.step("%d watchers, each for the pods of one node", nNodes)
	rv := s.move(name, to)
	s.step("moved %s from %s to %s", name, from, to)
	gone := s.next(streams[17])
	come := s.next(streams[423])
	finished := s.await("the end of the dispatch", func(r *probe.Record) bool { return r.Point == probe.DispatchFinished && r.RV == rv })
	s.key = finished.Seq
	started := s.await("its beginning", func(r *probe.Record) bool { return r.Point == probe.DispatchStarted && r.RV == rv })
	if gone.Type != watch.Deleted || come.Type != watch.Added {
		return "", fmt.Errorf("%s is told %s and %s %s, want DELETED and ADDED", from, gone.Type, to, come.Type)
	}
	s.step("%s is told %s, %s is told %s", from, gone.Type, to, come.Type)
	registered := s.watching("pods")
	return fmt.Sprintf("Of %d watchers of pods the dispatcher picked %d: the two nodes, and the %d that want every pod. %s received DELETED and %s ADDED, for the same change; the other %d nodes received nothing.",
		registered, started.Args[0], started.Args[0]-2, from, to, nNodes-2), nil
}

func node(n int) string { return fmt.Sprintf("story-node-%d", n) }

// move gives a pod another node, which the API does not allow: it is done at the storage.
func (s *stagehand) move(name, node string) uint64 {
	var moved corev1.Pod
	update := func(current runtime.Object) (runtime.Object, error) {
		current.(*corev1.Pod).Spec.NodeName = node
		return current, nil
	}
	key := "/registry/pods/" + namespace + "/" + name
	must(s.Pipeline.Server.Storage("pods").GuaranteedUpdate(s.ctx, key, &moved, false, nil, update, nil))
	return versionOf(&moved)
}

var selectorTransition = Story{
	ID:      "selector",
	Title:   "In and out of a selector",
	Symptom: "“The kubelet receives ADDED, and kubectl shows MODIFIED, for the same change.”",
	Watch:   "The two new lanes: what each receives for the same events. The type depends on the selector.",
	Chapter: "05-cachewatcher",
	Beats:   beatsOfSelector,
	play:    playSelectorTransition,
}

func playSelectorTransition(s *stagehand) (string, error) {
	name := s.name(0)
	s.create(name, nowhere, map[string]string{"tier": "green"})
	start := s.list(metav1.ListOptions{})
	s.step("created %s with tier=green", name)
	blue := s.openWith(metav1.ListOptions{ResourceVersion: start.ResourceVersion, LabelSelector: "tier=blue," + label + "=" + s.id})
	defer blue.Stop()
	kubelet := s.openWith(metav1.ListOptions{ResourceVersion: start.ResourceVersion, FieldSelector: "spec.nodeName=story-node", LabelSelector: label + "=" + s.id})
	defer kubelet.Stop()
	s.step("watched tier=blue, and the pods of story-node")
	var types, labels []string
	for _, tier := range []string{"blue", "green", "blue"} {
		event := s.after(blue, func() { s.relabel(name, "tier", tier) })
		types = append(types, string(event.Type))
		labels = append(labels, event.Object.(*corev1.Pod).Labels["tier"])
		s.step("tier=%s: %s, with the object as tier=%s", tier, event.Type, labels[len(labels)-1])
	}
	if got := strings.Join(append(types, labels...), " "); got != "ADDED DELETED ADDED blue blue blue" {
		return "", fmt.Errorf("the watch of tier=blue was sent %s", got)
	}
	bound := s.after(kubelet, func() { s.move(name, "story-node") })
	if bound.Type != watch.Added {
		return "", fmt.Errorf("the watch of the node was sent %s, want ADDED", bound.Type)
	}
	rv := versionOf(bound.Object)
	sent := s.await("the same event as it is stored", func(r *probe.Record) bool { return r.Point == probe.RingAppend && r.RV == rv })
	s.key = sent.Seq
	s.step("moved it to story-node: ADDED there, %s in the ring", sent.Type)
	return fmt.Sprintf("Three changes of one label reached the watch of tier=blue as %s. DELETED carried the object as it was when it still matched, at the new version. The ring holds its move to another node as %s; the watch of that node received ADDED, as it had not seen this pod before.", strings.Join(types, ", "), sent.Type), nil
}

// after does something and waits for the event of it.
func (s *stagehand) after(stream watch.Interface, act func()) watch.Event {
	act()
	event := s.next(stream)
	s.pause(eye)
	return event
}
