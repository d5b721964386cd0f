package scenario

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	reflector "listwatch/chapters/03-reflector"
	listwatch "listwatch/chapters/09-listwatch"
	"listwatch/internal/probe"
)

// ofPods is a record about the resource that the stories are about: each of them has a cache of its own.
func ofPods(_ *facts, r *probe.Record) bool { return r.Resource == "pods" }

// status is an answer with that HTTP status.
func status(code int) condition {
	return func(_ *facts, r *probe.Record) bool { return r.Point == probe.RequestAnswered && r.Args[0] == code }
}

var notReady = Story{
	ID:      "not-ready",
	Title:   "429 until the cache is ready",
	Symptom: "“the server has received too many requests and has asked us to try again later”, and the server has hardly any load.",
	Watch:   "The store of a server that has just started: it is empty until etcd has sent everything. Then the answers.",
	Chapter: "06-cacher",
	Thread:  "kubernetes/enhancements#4568",
	Alone:   "it ends the API server, and its etcd takes ten seconds for a list",
	Beats: []Beat{
		{Say: "The API server ends, and with it all streams. The informer keeps its objects, and the version that it has reached.",
			Look: look(probe.Wire, probe.Reflector, probe.Indexer), rest: at(probe.ReflectorWatchEnded, by("informer"))},
		{Say: "Another API server starts. Its cache of pods is empty, and etcd is slow: it needs ten seconds to send the state.",
			Question: ask("A client lists pods with a selector. What does the server answer?", 2, "An empty list", "Nothing, until the cache has its state", "429: try again in a second").
				because("Answers from an empty cache would be wrong, and requests that wait for it would pile up. So the server says when to retry."),
			Look: look(probe.HTTP, probe.Etcd, probe.Store), rest: moment{match: both(ownList, status(429))}},
		{Say: "The client reads one pod by its name. This one key is cheap: the server reads it from etcd.",
			Look: look(probe.HTTP, probe.Etcd), rest: moment{match: both(says("/pods/not-ready-a"), status(200))}},
		{Say: "The client repeats its list, each time after the seconds in the header Retry-After: one at first, and more the longer this lasts.",
			Look: look(probe.HTTP, probe.Store), rest: moment{n: 5, match: both(ownList, status(429))}},
		{Say: "The cache has the state of etcd. It is ready.",
			Look: look(probe.Etcd, probe.Ring, probe.Store), rest: at(probe.CacherReady, ofPods)},
		{Say: "Now the server answers the list. The informer opens its watch again, too.",
			Question: ask("Does the informer list again?", 0, "No: it resumes after its last version", "Yes: after a 429 nothing is certain").
				because("With 429 the server says that it has done nothing. What the informer knows stays valid."),
			Look: look(probe.HTTP, probe.Store, probe.Watcher, probe.Reflector), rest: all(moment{match: both(ownList, status(200))}, at(probe.ReflectorWatching, by("informer")))},
	},
	play: playNotReady,
}

func playNotReady(s *stagehand) (string, error) {
	rv := s.create(s.name(0), nowhere, nil)
	s.await("the informer's store", func(r *probe.Record) bool {
		return r.Point == probe.IndexerUpdated && r.Subject == "informer" && r.RV == rv
	})
	s.curtain()
	s.Machine.StopServer()
	s.await("the end of the informer's watch", of(probe.ReflectorWatchEnded, "informer"))
	s.step("the API server has ended")
	s.Machine.SlowEtcd(10 * time.Second)
	must(s.Machine.StartServer())
	s.step("another one has started; its etcd is slow")
	answer := s.listLater(metav1.ListOptions{ResourceVersion: "0"})
	refused := s.await("429", func(r *probe.Record) bool { return ownList(&facts{id: s.id}, r) && r.Args[0] == 429 })
	s.key = refused.Seq
	s.step("a list: 429")
	must(s.client.Get().Namespace(namespace).Resource("pods").Name(s.name(0)).Do(s.ctx).Error())
	s.step("a read of one pod by its name: 200, from etcd")
	got := <-answer
	if got.err != nil || len(got.list.Items) != 1 {
		return "", fmt.Errorf("the list came to %v: %v", got.list, got.err)
	}
	s.step("the cache is ready, and the list is answered")
	s.await("the informer's watch", of(probe.ReflectorWatching, "informer"))
	tries := s.count(func(r *probe.Record) bool { return ownList(&facts{id: s.id}, r) && r.Args[0] == 429 })
	if lists := s.count(of(probe.ReflectorListed, "informer")) + s.count(of(probe.ReflectorSynced, "informer")); lists > 0 {
		return "", fmt.Errorf("the informer took the whole state again")
	}
	s.step("the informer has resumed")
	return fmt.Sprintf("Until the cache had the state of etcd, the server answered lists and watches with 429 and Retry-After, %d times for this one list. A read by name went through to etcd. The informer waited and resumed after %d without a list: 429 says “wait”, and not “begin again”.", tries, rv), nil
}

const (
	nClients    = 1000
	nUnmarked   = 100 // of these clients, those that do not ask for bookmarks
	kubeletNode = "story-node-"
)

var serverRestart = Story{
	ID:      "server-restart",
	Title:   "The server restarts, and a thousand clients come back",
	Symptom: "“After each restart of the API server its memory and load jump, and etcd is busy for a minute.”",
	Watch:   "The watchers: a thousand end, a thousand come back. Count the lists.",
	Chapter: "06-cacher",
	Thread:  "kubernetes/enhancements#1904",
	Alone:   "it restarts the API server under a thousand clients of its own",
	Beats: []Beat{
		{Say: "A thousand clients watch, each the pods of its node. Other pods have changed since. Nine hundred clients asked for bookmarks and know the newest version. A hundred did not. Now the server ends, and with it all streams.",
			Look: look(probe.Watcher, probe.Wire), rest: nth(nClients, probe.WireClosed)},
		{Say: "Another server starts. It reads the state from etcd, once for each resource. Its ring is empty.",
			Look: look(probe.Etcd, probe.Ring, probe.Store), rest: at(probe.CacherReady, ofPods)},
		{Say: "The clients come back. Each first waits a short random time, so that they do not come all at once. Each asks to resume after the last version that it knows.",
			Question: ask("Which clients can resume, although the ring is empty?", 1, "All: nothing happened to their pods", "Only those whose version is as new as the server's list", "None of them").
				because("An empty ring reaches back to the list that filled the cache, and no further."),
			Look: look(probe.HTTP, probe.Ring, probe.Watcher), rest: at(probe.WireOpened, says("kubelet /api"))},
		{Say: "A client without bookmarks comes back with the version of its first list. The new ring does not hold the changes since then.",
			Look: look(probe.Ring, probe.Wire), rest: at(probe.FrameWritten, ofPods, typed("ERROR"))},
		{Say: "Two seconds later all are back. Each client that got a 410 has listed and then opened its watch.",
			Look: look(probe.HTTP, probe.Store, probe.Watcher), rest: all(nth(nClients, probe.WatcherAdded, says(kubeletNode)), nth(nUnmarked, probe.ListServed, ofPods))},
	},
	play: playServerRestart,
}

func playServerRestart(s *stagehand) (string, error) {
	s.create(s.name(0), nowhere, nil)
	others := s.watching("pods")
	for n := range nClients {
		which := func(options *metav1.ListOptions) {
			options.FieldSelector = "spec.nodeName=" + node(n)
			options.AllowWatchBookmarks = options.AllowWatchBookmarks && n >= nUnmarked
			if options.TimeoutSeconds != nil {
				*options.TimeoutSeconds = 600 // a thousand numbers by chance would make the recording twice as large
			}
		}
		r := reflector.New(reflector.Config{
			Name: node(n), ExpectedType: &corev1.Pod{}, Store: nothing{}, Clock: s.Clock,
			Jitter:        func() float64 { return float64(n) / nClients },
			ListerWatcher: listwatch.NewListWatch(s.Pipeline.Client.NewClient("kubelet", nil, nil), "pods", "", which),
		})
		s.group.Go(s.ctx, "reflector.Run", r.Run)
		s.pause(beat) // one after the other, which is easier to compress, too
	}
	s.until(func() bool { return s.watching("pods") == others+nClients })
	last := s.churn(s.name(0), 20)
	s.pause(90 * time.Second) // a bookmark comes each minute
	s.curtain()
	s.step("%d clients watch; other pods have changed up to %d", nClients, last)
	s.Machine.StopServer()
	s.step("the API server has ended")
	must(s.Machine.StartServer())
	s.step("another one has started")
	s.until(func() bool { return s.watching("pods") == others+nClients })
	return s.whoListed()
}

// whoListed says how the clients have come back.
func (s *stagehand) whoListed() (string, error) {
	s.pause(eye)
	must(s.read())
	var first, last time.Duration
	lists, refused := 0, 0
	for i := range s.seen {
		switch r := &s.seen[i]; {
		case r.Point == probe.WireOpened && strings.HasPrefix(r.Text, "kubelet "):
			if last = r.Time; first == 0 {
				first = last
			}
			if r.Subject == "" { // no watcher: what follows is an ERROR
				refused++
				s.key = r.Seq
			}
		case r.Point == probe.ListServed && r.Resource == "pods":
			lists++
		}
	}
	s.step("all are back; %d were refused, %d have listed", refused, lists)
	if refused != nUnmarked || lists != nUnmarked {
		return "", fmt.Errorf("%d were refused and %d have listed, want %d", refused, lists, nUnmarked)
	}
	return fmt.Sprintf("A thousand streams ended at once, and a thousand clients came back within %v. The %d that knew the newest version, from a bookmark, resumed. The %d others got 410 and listed. One more write in between would have made all thousand list: a new ring begins empty. That is one reason why clusters run several servers, whose rings reach back.",
		(last - first).Round(100*time.Millisecond), nClients-refused, refused), nil
}

// nothing is a store that keeps nothing: of these clients only the requests count.
type nothing struct{}

func (nothing) Add(any) error               { return nil }
func (nothing) Update(any) error            { return nil }
func (nothing) Delete(any) error            { return nil }
func (nothing) Replace([]any, string) error { return nil }
func (nothing) Resync() error               { return nil }

var restoredEtcd = Story{
	ID:      "restored-etcd",
	Title:   "“Too large resource version” after a restored etcd",
	Symptom: "“Timeout: Too large resource version: 17, current: 12”, and controllers that no longer react to anything.",
	Watch:   "The versions in the ring and at the informer, before and after etcd is restored from its backup.",
	Chapter: "04-watchcache",
	Thread:  "kubernetes/kubernetes#91073",
	Alone:   "it restores etcd from a backup",
	Beats: []Beat{
		{Say: "The story takes a backup of etcd. After that a pod changes six times. The informer has every change.",
			Look: look(probe.Etcd, probe.Ring, probe.Indexer), rest: nth(6, probe.IndexerUpdated, by("informer"), pod("a"), typed("MODIFIED"))},
		{Say: "etcd is lost, and restored from the backup. The API server restarts. etcd no longer has the last six versions, and will give their numbers to other changes.",
			Look: look(probe.Etcd, probe.Ring, probe.Store), rest: at(probe.CacheReplaced, ofPods)},
		{Say: "The informer comes back and asks to resume after the last version that it knows. That version lies in the server's future.",
			Question: ask("What does the server answer to this watch?", 1, "410: list again", "200, and then it sends nothing", "504: too large resource version").
				because("A watch begins after the version that it names, even if that version is still to come. The server cannot know that it was used before."),
			Look: look(probe.Ring, probe.Watcher, probe.Wire, probe.Reflector), rest: at(probe.ReflectorWatching, by("informer"))},
		{Say: "A client creates another pod. The ring has it. Its version is too small for the informer's watcher, so the watcher sends nothing.",
			Look: look(probe.Ring, probe.Dispatch, probe.Watcher, probe.Indexer), rest: at(probe.InputReceived, toInformer, pod("b"))},
		{Say: "Another client lists, and asks for a state no older than the version that it has seen before. The cache waits three seconds for that version.",
			Look: look(probe.HTTP, probe.Store), rest: moment{match: status(504)}},
		{Say: "The pod keeps changing. etcd counts up, and passes the version that the informer asked for.",
			Question: ask("Does the informer learn of the pod that was created in between?", 1, "Yes: it receives all that it has missed", "No: it receives only what comes after its version").
				because("Its watch begins after the version that it asked for. The watch skips what was written below that number, without an error."),
			Look: look(probe.Ring, probe.Watcher, probe.Reflector, probe.Indexer), rest: at(probe.IndexerUpdated, by("informer"), newest)},
	},
	play: playRestoredEtcd,
}

// toInformer is about the watcher that serves the informer.
func toInformer(f *facts, r *probe.Record) bool { return r.Subject == f.informer }

func playRestoredEtcd(s *stagehand) (string, error) {
	backup := s.create(s.name(0), nowhere, nil)
	known := s.churn(s.name(0), 6)
	knows := func(rv uint64) {
		s.await("the informer's store", func(r *probe.Record) bool {
			return r.Point == probe.IndexerUpdated && r.Subject == "informer" && r.RV == rv && about(r, s.name(0))
		})
	}
	knows(known)
	s.step("took a backup at %d, and changed a pod up to %d; the informer knows it", backup, known)
	s.Machine.StopServer()
	s.Machine.RestoreEtcd(backup)
	must(s.Machine.StartServer())
	must(s.Pipeline.Server.WaitReady(s.ctx))
	restored := s.Log.Last()
	s.step("restored etcd, and started the API server again")
	s.awaitAfter(restored, "the informer's watch", of(probe.ReflectorWatching, "informer"))
	s.step("the informer watches from %d", known)
	created := s.create(s.name(1), nowhere, nil)
	s.step("created another pod, at %d", created)
	answer := s.listLater(metav1.ListOptions{ResourceVersion: fmt.Sprint(known)})
	tooLarge := s.awaitAfter(restored, "504", func(r *probe.Record) bool { return r.Point == probe.RequestAnswered && r.Args[0] == 504 })
	s.key = tooLarge.Seq
	s.step("a list no older than %d: 504, too large resource version", known)
	last := s.churn(s.name(0), int(known-created)+2)
	knows(last)
	s.step("changed the first pod up to %d: the informer is told again", last)
	got := <-answer
	_, missed := s.Pipeline.Client.Pods().Lister().Namespace(namespace).Get(s.name(1))
	if got.err != nil || len(got.list.Items) != 2 || !apierrors.IsNotFound(missed) {
		return "", fmt.Errorf("the list came to %v (%v), and the informer's store says of the second pod: %v", got.list, got.err, missed)
	}
	s.step("the informer's store still lacks the other pod")
	return fmt.Sprintf("etcd went back from %d to %d. A list no older than %d was refused with 504 after three seconds. The server accepted the watch from %d, and sent nothing until etcd had counted past %d. The server has the pod that was created at %d, the informer does not, and no error says so. Only a new list repairs it: restart the clients, or restore etcd with its revision raised and marked compacted, so that each client gets 410.",
		known, backup, known, known, known, created), nil
}

// listed is what a list has come to.
type listed struct {
	list *corev1.PodList
	err  error
}

// listLater lists on a goroutine of its own, as often as it is told to try again later.
func (s *stagehand) listLater(options metav1.ListOptions) <-chan listed {
	answer := make(chan listed, 1) // sent once, by the goroutine; room for it
	s.group.Go(s.ctx, "story.list", func(context.Context) {
		for {
			list, err := s.tryList(options)
			if !apierrors.IsTooManyRequests(err) {
				answer <- listed{list, err}
				return
			}
		}
	})
	return answer
}
