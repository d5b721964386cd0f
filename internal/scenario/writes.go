package scenario

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"listwatch/internal/probe"
)

var staleWrite = Story{
	ID:      "stale-write",
	Title:   "A stale read, then a 409",
	Symptom: "“Operation cannot be fulfilled on pods: the object has been modified; please apply your changes to the latest version and try again”",
	Watch:   "The indexer, whose connection is cut, and the ring. Then the answer to the write.",
	Chapter: "07-registry",
	Beats: []Beat{
		{Say: "A client creates a pod. The informer of a controller receives it and keeps it in its local store.",
			Look: look(probe.Ring, probe.Reflector, probe.Indexer), rest: at(probe.IndexerUpdated, by("informer"), pod("a"))},
		{Say: "The connection of the informer breaks.",
			Look: look(probe.Wire, probe.Reflector), rest: at(probe.ReflectorWatchEnded, by("informer"))},
		{Say: "Another client changes the pod. The server has the second version, the informer's local store still has the first.",
			Look: look(probe.Etcd, probe.Ring, probe.Indexer), rest: nth(1, probe.RingAppend, pod("a"), typed("MODIFIED"))},
		{Say: "The controller reads the pod from the informer's local store, adds a label, and sends the whole pod back. The pod carries the version that the controller has read.",
			Question: ask("What does the server do?", 2, "It stores the pod as sent: the last write wins", "It merges both changes", "It refuses the write").
				because("The pod carries the version that was read. That is not the newest, so the server answers 409 and writes nothing."),
			Look: look(probe.HTTP, probe.Etcd), rest: at(probe.RequestAnswered, says("PUT "), pod409)},
		{Say: "The connection works again. The informer resumes after the version that it knows, and receives the change.",
			Look: look(probe.Ring, probe.Wire, probe.Reflector, probe.Indexer), rest: at(probe.IndexerUpdated, by("informer"), pod("a"), typed("MODIFIED"))},
		{Say: "The controller reads again, and adds its label to the second version. The other client's change is not lost.",
			Look: look(probe.HTTP, probe.Etcd, probe.Ring), rest: nth(2, probe.RingAppend, pod("a"), typed("MODIFIED"))},
	},
	play: playStaleWrite,
}

func pod409(_ *facts, r *probe.Record) bool { return r.Args[0] == 409 }

func playStaleWrite(s *stagehand) (string, error) {
	name := s.name(0)
	first := s.create(name, nowhere, nil)
	knows := func(rv uint64) {
		s.await("the informer's store", func(r *probe.Record) bool {
			return r.Point == probe.IndexerUpdated && r.Subject == "informer" && r.RV == rv
		})
	}
	knows(first)
	s.step("created %s, at version %d; the informer knows it", name, first)
	s.turn("line.cut", informerAgent, "true")
	s.await("the end of its watch", of(probe.ReflectorWatchEnded, "informer"))
	s.step("cut the connection of the informer")
	second := s.relabel(name, "turn", "other")
	s.inRing(second)
	s.step("another client changed the pod: version %d", second)
	refusal := s.writeBack(name)
	if !apierrors.IsConflict(refusal) {
		return "", fmt.Errorf("the write of version %d was answered %v, want a conflict", first, refusal)
	}
	refused := s.await("the refusal", func(r *probe.Record) bool { return r.Point == probe.RequestAnswered && r.Args[0] == 409 })
	s.key = refused.Seq
	s.step("wrote the pod as the informer knows it: 409")
	s.turn("line.cut", informerAgent, "false")
	knows(second)
	s.step("restored the connection; the informer has version %d", second)
	must(s.writeBack(name))
	written := s.await("the write", func(r *probe.Record) bool {
		return r.Point == probe.RingAppend && about(r, name) && r.RV > second
	})
	s.step("read again and wrote: version %d", written.RV)
	return fmt.Sprintf("The controller wrote on top of version %d, which its informer still held, when the pod was at %d already. The server compared the two and answered 409. It wrote nothing, so nothing was lost. After a new read the write succeeded as version %d. An informer is always a little behind, so a 409 now and then is normal.",
		first, second, written.RV), nil
}

// writeBack reads a pod from the informer's local store, as a controller does, and writes it with one label more.
func (s *stagehand) writeBack(name string) error {
	known, err := s.Pipeline.Client.Pods().Lister().Namespace(namespace).Get(name)
	if err != nil {
		return err
	}
	changed := known.DeepCopy() // what comes out of a cache is shared
	changed.Labels["owner"] = "controller"
	return s.client.Put().Namespace(namespace).Resource("pods").Name(name).Body(changed).Do(s.Writing).Error()
}

const finalizer = "example.com/clean-up"

var finalizers = Story{
	ID:      "finalizers",
	Title:   "Finalizers, or why Delete answers MODIFIED",
	Symptom: "“kubectl delete does not return, and the watch says MODIFIED. Is the pod deleted or not?”",
	Watch:   "The ring and the new lane: one deletion is two events. Also the answers to the requests.",
	Chapter: "07-registry",
	Beats: []Beat{
		{Say: "A client creates a pod with a finalizer: the name of a controller that has work to do before the pod may go. Another client watches the pod.",
			Look: look(probe.Ring, probe.Watcher), rest: at(probe.WatcherAdded, stream(0))},
		{Say: "A client deletes the pod. The server answers 200.",
			Question: ask("What does the watch receive?", 1, "DELETED", "MODIFIED", "Nothing, as long as the finalizer is there").
				because("The server only marks the pod, and a mark is a change like any other."),
			Look: look(probe.HTTP, probe.Etcd, probe.Ring, probe.Watcher), rest: at(probe.ResultSent, stream(0), typed("MODIFIED"))},
		{Say: "The change is a mark: metadata.deletionTimestamp. The client deletes the pod again. The server finds the mark, answers 200, and writes nothing.",
			Look: look(probe.HTTP, probe.Etcd), rest: at(probe.RequestAnswered, says("DELETE "))},
		{Say: "The controller has done its work. It removes its finalizer with a patch.",
			Question: ask("What does this patch write to etcd?", 2, "The pod without the finalizer", "The pod without the finalizer, and then its deletion", "The deletion only").
				because("The pod is marked, and the patch removes the last finalizer. So the server deletes the pod instead of updating it."),
			Look: look(probe.HTTP, probe.Etcd, probe.Ring), rest: at(probe.RingAppend, pod("a"), typed("DELETED"))},
		{Say: "Now the watch receives DELETED. The object in the event carries the version of the deletion.",
			Look: look(probe.Ring, probe.Watcher, probe.Wire), rest: at(probe.FrameWritten, stream(0), typed("DELETED"))},
	},
	play: playFinalizers,
}

func playFinalizers(s *stagehand) (string, error) {
	name := s.name(0)
	rv := s.create(name, nowhere, nil, func(pod *corev1.Pod) { pod.Finalizers = []string{finalizer} })
	stream := s.open(fmt.Sprint(rv))
	defer stream.Stop()
	s.lane(s.from, "story-"+s.id)
	s.step("created %s with the finalizer %s, and watched it from %d", name, finalizer, rv)
	marked := s.after(stream, func() { must(s.delete(name)) })
	mark := versionOf(marked.Object)
	if seen, ok := marked.Object.(*corev1.Pod); !ok || marked.Type != watch.Modified || seen.DeletionTimestamp == nil {
		return "", fmt.Errorf("after the request to delete the watch was sent %s %v", marked.Type, marked.Object)
	}
	s.step("deleted it: %s at %d, with a deletionTimestamp", marked.Type, mark)
	must(s.delete(name))
	s.step("deleted it again: 200, and nothing changed")
	patch := []byte(`{"metadata":{"finalizers":null}}`)
	gone := s.after(stream, func() {
		must(s.client.Patch(types.MergePatchType).Namespace(namespace).Resource("pods").Name(name).Body(patch).Do(s.Writing).Error())
	})
	end := versionOf(gone.Object)
	if gone.Type != watch.Deleted || end <= mark {
		return "", fmt.Errorf("after the finalizer was removed the watch was sent %s at %d, want DELETED after %d", gone.Type, end, mark)
	}
	s.step("removed the finalizer: %s at %d", gone.Type, end)
	sent := s.await("the frame", func(r *probe.Record) bool { return r.Point == probe.FrameWritten && r.RV == end && r.Type == "DELETED" })
	s.key = sent.Seq
	return fmt.Sprintf("The first request to delete only marked the pod: MODIFIED at %d. The second found the mark and wrote nothing. The patch that removed the last finalizer deleted the pod: DELETED at %d, and no event says that the finalizer was removed. A deletion that does not end waits for a finalizer: metadata.finalizers names its owner.",
		mark, end), nil
}

var leftSelector = Story{
	ID:      "left-selector",
	Title:   "DELETED for a pod that still runs",
	Symptom: "“My controller receives DELETED, creates the pod again, and gets “already exists”. And kubectl still shows the pod.”",
	Watch:   "Two informers and one change: the informer of all pods, and one more that selects tier=blue.",
	Chapter: "05-cachewatcher",
	Beats: []Beat{
		{Say: "A controller has an informer for the pods with tier=blue. A client creates a pod with this label, and the informer calls the controller's handler.",
			Look: look(probe.Watcher, probe.Reflector, probe.Indexer, probe.Handler), rest: at(probe.HandlerReturned, by(blue), pod("a"))},
		{Say: "A client changes the label to tier=green. The ring stores a MODIFIED. The pod keeps running.",
			Look: look(probe.Etcd, probe.Ring), rest: at(probe.RingAppend, pod("a"), typed("MODIFIED"))},
		{Say: "The watcher of the blue informer compares: the old pod matched the selector, the new one does not.",
			Question: ask("What does this watcher send?", 2, "MODIFIED, with tier=green", "Nothing: the pod does not match", "DELETED, with the pod as it was when it matched").
				because("The type follows from two answers: did the old pod match, and does the new one? For this watch the pod is gone."),
			Look: look(probe.Dispatch, probe.Watcher), rest: at(probe.ResultSent, pod("a"), typed("DELETED"))},
		{Say: "The blue informer drops the pod from its local store and calls OnDelete. The informer of all pods calls OnUpdate for the same change.",
			Look: look(probe.Reflector, probe.Indexer, probe.Handler),
			rest: all(at(probe.HandlerReturned, by(blue), pod("a"), typed("DELETED")), at(probe.HandlerReturned, by("observer"), pod("a"), typed("MODIFIED")))},
		{Say: "The controller takes the pod for deleted, and creates it again under its name.",
			Question: ask("What does the server answer?", 1, "201: a new pod", "409: it already exists").
				because("The pod was never deleted. DELETED said that it no longer matches the selector."),
			Look: look(probe.HTTP, probe.Etcd), rest: at(probe.RequestAnswered, says("POST "), pod409)},
	},
	play: playLeftSelector,
}

const blue = "blue" // a handler, and what its informer selects

func playLeftSelector(s *stagehand) (string, error) {
	name := s.name(0)
	s.inform("informer-"+blue, blue, 0, func(options *metav1.ListOptions) { options.LabelSelector = "tier=" + blue })
	s.create(name, nowhere, map[string]string{"tier": blue})
	told := func(handler, typ string) probe.Record {
		return s.await(typ+" for "+handler, func(r *probe.Record) bool {
			return r.Point == probe.HandlerReturned && r.Subject == handler && r.Type == typ && about(r, name)
		})
	}
	told(blue, "ADDED")
	s.step("created %s with tier=blue; the handler of tier=blue is told ADDED", name)
	rv := s.relabel(name, "tier", "green")
	s.step("changed the label to tier=green, at %d", rv)
	deleted := told(blue, "DELETED")
	s.key = deleted.Seq
	told("observer", "MODIFIED")
	s.step("the handler of tier=blue is told DELETED, that of all pods MODIFIED")
	alive := s.list(metav1.ListOptions{})
	err := s.post(name, nowhere, nil).Error()
	if len(alive.Items) != 1 || !apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("there are %d pods, and to create it again was answered %v", len(alive.Items), err)
	}
	s.await("409", func(r *probe.Record) bool { return r.Point == probe.RequestAnswered && r.Args[0] == 409 })
	s.step("created it again: 409")
	return fmt.Sprintf("One change of a label, at %d, was OnDelete for the informer of tier=blue and OnUpdate for that of all pods. The pod still runs: a list shows it as tier=%s, and the server refused its creation with 409. For a watch with a selector, DELETED means that the object no longer matches. A controller that must know more asks the server.",
		rv, alive.Items[0].Labels["tier"]), nil
}
