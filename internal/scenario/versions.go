package scenario

import (
	"errors"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	listwatch "listwatch/chapters/09-listwatch"
	"listwatch/internal/probe"
)

var losesNothing = Story{
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
		s.create(s.name(n), nowhere, nil)
	}
	list := s.list(metav1.ListOptions{})
	s.step("listed %d pods at version %s", len(list.Items), list.ResourceVersion)
	before := s.changes(5)
	s.list(metav1.ListOptions{}) // a consistent read: the cache has seen them
	s.step("changed pods %d times while no watch was open", len(before))
	stream := s.open(list.ResourceVersion)
	defer stream.Stop()
	s.await("the replay from the ring", of(probe.WatcherInterval, s.lane(s.from, "story-"+s.id)))
	s.step("began to watch from %s", list.ResourceVersion)
	after := s.changes(5)
	want := append(before, after...)
	s.compare(stream, want)
	s.step("the stream brought %d events", len(want))
	r := s.await("the replay", func(r *probe.Record) bool { return r.Point == probe.WatcherInterval && r.Args[0] >= len(before) })
	s.key = r.Seq
	return fmt.Sprintf("The list had version %s. Five changes came before the watch began and five after. The watch from %s brought all ten, in order, each once: %d to %d. The first five were still in the ring.",
		list.ResourceVersion, list.ResourceVersion, want[0], want[len(want)-1]), nil
}

// changes changes the first pod n times and returns the versions.
func (s *stagehand) changes(n int) (versions []uint64) {
	for i := range n {
		versions = append(versions, s.relabel(s.name(i%3), "turn", strconv.Itoa(len(s.steps)*100+i)))
	}
	return versions
}

// open watches the pods of the story from a version on.
func (s *stagehand) open(rv string) watch.Interface {
	return s.openWith(metav1.ListOptions{ResourceVersion: rv, LabelSelector: label + "=" + s.id})
}

func (s *stagehand) openWith(options metav1.ListOptions) watch.Interface {
	return ok(listwatch.NewListWatch(s.client, "pods", namespace, nil).Watch(s.ctx, options))
}

// next waits for the next event of a stream.
func (s *stagehand) next(stream watch.Interface) (event watch.Event) {
	timer := s.Clock.NewTimer(patience)
	defer timer.Stop()
	open := true
	select {
	case <-s.ctx.Done():
		must(s.ctx.Err())
	case <-timer.C():
		must(fmt.Errorf("no event came in %v", patience))
	case event, open = <-stream.ResultChan():
	}
	if !open {
		must(errors.New("the stream has ended"))
	}
	return event
}

// compare holds that a stream brings exactly these versions, in this order.
func (s *stagehand) compare(stream watch.Interface, want []uint64) {
	for i, rv := range want {
		event := s.next(stream)
		if got := versionOf(event.Object); got != rv {
			must(fmt.Errorf("event %d of %d is %s at %d, want version %d", i+1, len(want), event.Type, got, rv))
		}
	}
}

var threeVersions = Story{
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
	old := s.create(name, nowhere, map[string]string{"turn": "first"})
	s.step("created %s, at version %d", name, old)
	now := s.relabel(name, "turn", "second")
	s.step("changed it: version %d", now)
	var answers [3]string
	for i, options := range []metav1.ListOptions{
		{}, {ResourceVersion: "0"}, {ResourceVersion: fmt.Sprint(old), ResourceVersionMatch: metav1.ResourceVersionMatchExact},
	} {
		began := s.Log.Last()
		list := s.list(options)
		if len(list.Items) != 1 {
			return "", fmt.Errorf("list %d has %d pods, want one", i, len(list.Items))
		}
		answers[i] = fmt.Sprintf("%q at version %s", list.Items[0].Labels["turn"], list.ResourceVersion)
		s.step("listed with resourceVersion=%q: %s", options.ResourceVersion, answers[i])
		// Others list, too: what was served at this version is ours, or just as good.
		served := s.awaitAfter(began, "the answer of the cache", func(r *probe.Record) bool {
			return r.Point == probe.ListServed && fmt.Sprint(r.RV) == list.ResourceVersion
		})
		if s.key = served.Seq; i == 2 && served.RV != old {
			return "", fmt.Errorf("the list at exactly %d was served at %d", old, served.RV)
		}
		s.pause(eye)
	}
	return fmt.Sprintf("Without a version: %s, and nothing newer existed at the time of the request. With 0: %s, what the cache had at that moment, here just as new. At exactly %d: %s, from a snapshot that shares its tree with the present state.",
		answers[0], answers[1], old, answers[2]), nil
}
