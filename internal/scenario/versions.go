package scenario

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	listwatch "listwatch/chapters/09-listwatch"
	"listwatch/internal/probe"
)

var losesNothing = Scenario{
	ID:      "loses-nothing",
	Title:   "List, then watch: nothing is lost",
	Symptom: "“A pod was created between my list and my watch. Have I missed it?”",
	Watch:   "The ring. The watch begins in the past, at the version of the list, and first receives what the ring holds.",
	Chapter: "03-reflector",
	Beats:   beatsOfLosesNothing,
	play:    playLosesNothing,
}

func playLosesNothing(s *stagehand) (string, error) {
	for n := range 3 {
		if _, err := s.create(s.name(n), nowhere, nil); err != nil {
			return "", err
		}
	}
	list, err := s.list(metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	s.step("listed %d pods at version %s", len(list.Items), list.ResourceVersion)
	before, err := s.changes(5)
	if err != nil {
		return "", err
	}
	if _, err := s.list(metav1.ListOptions{}); err != nil { // a consistent read: the cache has seen them
		return "", err
	}
	s.step("changed pods %d times while no watch was open", len(before))
	stream, err := s.open(list.ResourceVersion)
	if err != nil {
		return "", err
	}
	defer stream.Stop()
	if r, err := s.lane(s.from, "story-"+s.id); err != nil {
		return "", err
	} else if _, err := s.await("the replay from the ring", of(probe.WatcherInterval, r)); err != nil {
		return "", err
	}
	s.step("began to watch from %s", list.ResourceVersion)
	after, err := s.changes(5)
	if err != nil {
		return "", err
	}
	want := append(before, after...)
	if err := s.compare(stream, want); err != nil {
		return "", err
	}
	s.step("the stream brought %d events", len(want))
	r, err := s.await("the replay", func(r *probe.Record) bool { return r.Point == probe.WatcherInterval && r.Args[0] >= len(before) })
	s.key = r.Seq
	return fmt.Sprintf("The list had version %s. Five changes came before the watch began and five after. The watch from %s brought all ten, in order, each once: %d to %d. The first five were still in the ring.",
		list.ResourceVersion, list.ResourceVersion, want[0], want[len(want)-1]), err
}

// changes changes the first pod n times and returns the versions.
func (s *stagehand) changes(n int) (versions []uint64, err error) {
	for i := range n {
		rv, err := s.relabel(s.name(i%3), "turn", strconv.Itoa(len(s.steps)*100+i))
		if err != nil {
			return nil, err
		}
		versions = append(versions, rv)
	}
	return versions, nil
}

// open watches the pods of the story from a version on.
func (s *stagehand) open(rv string) (watch.Interface, error) {
	return s.openWith(metav1.ListOptions{ResourceVersion: rv, LabelSelector: label + "=" + s.id})
}

func (s *stagehand) openWith(options metav1.ListOptions) (watch.Interface, error) {
	return listwatch.NewListWatch(s.client, "pods", namespace, nil).Watch(s.ctx, options)
}

// next waits for the next event of a stream.
func (s *stagehand) next(stream watch.Interface) (watch.Event, error) {
	timer := s.Clock.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-s.ctx.Done():
		return watch.Event{}, s.ctx.Err()
	case <-timer.C():
		return watch.Event{}, fmt.Errorf("no event came in %v", patience)
	case event, ok := <-stream.ResultChan():
		if !ok {
			return watch.Event{}, fmt.Errorf("the stream has ended")
		}
		return event, nil
	}
}

// compare holds that a stream brings exactly these versions, in this order.
func (s *stagehand) compare(stream watch.Interface, want []uint64) error {
	for i, rv := range want {
		event, err := s.next(stream)
		if err != nil {
			return fmt.Errorf("event %d of %d: %w", i+1, len(want), err)
		}
		if got, err := version(event.Object, nil); err != nil || got != rv {
			return fmt.Errorf("event %d is %s at %d, want version %d (%v)", i+1, event.Type, got, rv, err)
		}
	}
	return nil
}

var threeVersions = Scenario{
	ID:      "three-versions",
	Title:   "No version, 0, and exactly N",
	Symptom: "“The same list gives three answers, depending on resourceVersion. Which one is right?”",
	Watch:   "The store, three times. Without a version the cache first makes sure that it has caught up with etcd.",
	Chapter: "06-cacher",
	Thread:  "kubernetes/kubernetes#59848",
	Beats:   beatsOfThreeVersions,
	play:    playThreeVersions,
}

func playThreeVersions(s *stagehand) (string, error) {
	name := s.name(0)
	old, err := s.create(name, nowhere, map[string]string{"turn": "first"})
	if err != nil {
		return "", err
	}
	s.step("created %s, at version %d", name, old)
	now, err := s.relabel(name, "turn", "second")
	if err != nil {
		return "", err
	}
	s.step("changed it: version %d", now)
	var answers [3]string
	for i, options := range []metav1.ListOptions{
		{}, {ResourceVersion: "0"}, {ResourceVersion: fmt.Sprint(old), ResourceVersionMatch: metav1.ResourceVersionMatchExact},
	} {
		began := s.Log.Last()
		list, err := s.list(options)
		if err != nil {
			return "", err
		}
		if len(list.Items) != 1 {
			return "", fmt.Errorf("list %d has %d pods, want one", i, len(list.Items))
		}
		answers[i] = fmt.Sprintf("%q at version %s", list.Items[0].Labels["turn"], list.ResourceVersion)
		s.step("listed with resourceVersion=%q: %s", options.ResourceVersion, answers[i])
		// Others list, too: what was served at this version is ours, or just as good.
		served, err := s.awaitAfter(began, "the answer of the cache", func(r *probe.Record) bool {
			return r.Point == probe.ListServed && fmt.Sprint(r.RV) == list.ResourceVersion
		})
		if err != nil {
			return "", err
		}
		if s.key = served.Seq; i == 2 && served.RV != old {
			return "", fmt.Errorf("the list at exactly %d was served at %d", old, served.RV)
		}
		if err := s.pause(eye); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("Without a version: %s, and nothing newer existed at the time of the request. With 0: %s, what the cache had at that moment, here just as new. At exactly %d: %s, from a snapshot that shares its tree with the present state.",
		answers[0], answers[1], old, answers[2]), nil
}
