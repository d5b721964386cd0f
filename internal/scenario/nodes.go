package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"listwatch/internal/probe"
	"listwatch/internal/sandbox"
)

// posted is the request that creates a pod.
const posted = "POST /api/v1/namespaces/default/pods"

var leaderGone = Story{
	ID:      "leader-gone",
	Title:   "etcd’s leader is gone",
	Symptom: "“etcdserver: request timed out, possibly due to previous leader failure”, for a second or two, and then everything works again.",
	Watch:   "What waits and what goes on: a write, a list at version 0, a list without a version, the open watch.",
	Chapter: "02-etcd3",
	Alone:   "it stops the node that leads an etcd of three, which here is a small one that behaves like them; -etcd-nodes 3 runs real ones",
	Beats: []Beat{
		{Say: "etcd has three nodes. A write goes through the node that leads, and counts when two of the three have it. A client creates a pod.",
			Look: look(probe.HTTP, probe.Etcd, probe.Ring, probe.Indexer), rest: at(probe.IndexerUpdated, by("informer"), pod("a"))},
		{Say: "The node that leads dies. The other two hear nothing from it, wait for their election timeout, and begin to vote.",
			Look: look(probe.Etcd), rest: at(probe.EtcdLookedAt, refusesWrites)},
		{Say: "A client creates another pod. The server sends the write to one of the two nodes, and that node forwards it to the leader that is dead.",
			Look: look(probe.HTTP, probe.Etcd), rest: at(probe.RequestReceived, says(posted))},
		{Say: "A client lists pods with resourceVersion=0, and another one without a version.",
			Question: ask("Which of the two lists does the server answer now?", 0, "The one with version 0", "The one without a version", "Both", "Neither").
				because("With version 0 a client takes what the cache has. Without a version the server asks etcd for its newest revision first, and for that etcd needs a leader."),
			Look: look(probe.HTTP, probe.Store), rest: moment{match: both(ownList, says("resourceVersion=0"), status(200))}},
		{Say: "A second later another node leads. It answers the server, and the server answers the list that waited. No watch has ended, and no client has listed again.",
			Look: look(probe.HTTP, probe.Etcd, probe.Store), rest: moment{match: both(ownList, without("resourceVersion"), status(200))}},
		{Say: "The server answers the write with 500. The write was lost on its way to the dead leader. etcd cannot tell this from a write whose answer was lost.",
			Question: ask("Was the pod created?", 2, "No: 500 says so", "Yes: etcd keeps what it was given", "The client cannot know from the answer").
				because("Here it was not. Had the leader passed the write on before it died, the new leader would have kept it. So the client reads, and then decides."),
			Look: look(probe.HTTP, probe.Etcd), rest: at(probe.RequestAnswered, says(posted), status(500))},
		{Say: "The client reads: 404. It creates the pod again. The informer receives it on the watch that has been open all the time.",
			Look: look(probe.HTTP, probe.Etcd, probe.Ring, probe.Indexer), rest: at(probe.IndexerUpdated, by("informer"), pod("b"))},
	},
	play: playLeaderGone,
}

// refusesWrites is what etcd does without a leader.
func refusesWrites(_ *facts, r *probe.Record) bool { return r.Args[2] == 1 }

func without(text string) condition {
	return func(f *facts, r *probe.Record) bool { return !says(text)(f, r) }
}

func playLeaderGone(s *stagehand) (string, error) {
	stored := func(n int, rv uint64) {
		s.await("the informer's store", func(r *probe.Record) bool {
			return r.Point == probe.IndexerUpdated && r.Subject == "informer" && r.RV == rv && about(r, s.name(n))
		})
	}
	rv := s.create(s.name(0), nowhere, nil)
	stored(0, rv)
	s.step("created a pod, at %d", rv)
	s.Machine.StopLeader()
	s.step("the node of etcd that leads is dead")
	lost := make(chan error, 1) // sent once, by the goroutine
	began := s.Clock.Now()
	s.group.Go(s.ctx, "story.write", func(context.Context) {
		lost <- s.post(s.name(1), nowhere, nil).Error()
	})
	s.pause(eye)
	fresh := s.listLater(metav1.ListOptions{})
	s.pause(eye)
	s.list(metav1.ListOptions{ResourceVersion: "0"})
	s.step("a list at version 0 is answered; a write and a list without a version wait")
	s.pause(eye)
	select {
	case got := <-fresh:
		return "", fmt.Errorf("a list without a version came to %v (%v) without a leader", got.list, got.err)
	case err := <-lost:
		return "", fmt.Errorf("a write came to %v without a leader", err)
	default:
	}
	s.Machine.Elect()
	if got := <-fresh; got.err != nil {
		return "", got.err
	}
	s.step("another node leads, and the list is answered")
	err := <-lost
	waited := s.Clock.Since(began)
	answered := s.await("500", func(r *probe.Record) bool { return says(posted)(nil, r) && status(500)(nil, r) })
	if err == nil {
		return "", errors.New("the write was answered without an error")
	}
	s.key = answered.Seq
	s.step("the write is answered: %v", err)
	if read := s.client.Get().Namespace(namespace).Resource("pods").Name(s.name(1)).Do(s.ctx).Error(); !apierrors.IsNotFound(read) {
		return "", fmt.Errorf("the pod whose creation was lost: %w", read)
	}
	again := versionOf(ok(s.post(s.name(1), nowhere, nil).Get()))
	stored(1, again)
	if n := s.listsOfInformer(); n > 0 {
		return "", fmt.Errorf("the informer listed %d times", n)
	}
	s.step("created the pod again, at %d; the informer knows it", again)
	return fmt.Sprintf("Without a leader, etcd took no write and answered no consistent read; the cache answered at version 0, and all watches stayed open. A write on its way to the dead leader was lost, and answered with 500 after %v. Sent again, it got version %d. No client listed again.", waited, again), nil
}

// listsOfInformer counts how often the informer took the whole state since the story began.
func (s *stagehand) listsOfInformer() int {
	return s.count(of(probe.ReflectorListed, "informer")) + s.count(of(probe.ReflectorSynced, "informer"))
}

var failOver = Story{
	ID:      "fail-over",
	Title:   "A client that fails over",
	Symptom: "“Which of our API servers a controller talks to changes with every deployment. Does it miss events, or see some twice?”",
	Watch:   "The versions in the ring and at the informer: they are the same numbers, whichever server sends them.",
	Chapter: "03-reflector",
	Alone:   "it needs a second API server, and lets it die",
	Beats: []Beat{
		{Say: "Two API servers work on one etcd. The stage shows one of them. The informer watches at the other, which is not drawn. A client creates a pod; etcd gives it its version, so both servers know it by the same number.",
			Look: look(probe.Etcd, probe.Ring, probe.Indexer), rest: all(at(probe.RingAppend, pod("a")), at(probe.IndexerUpdated, by("informer"), pod("a")))},
		{Say: "The server that is not drawn hangs. Its connections are open, and nothing comes through them. The pod changes three times. The ring on the stage holds the changes; the informer hears nothing of them.",
			Look: look(probe.Etcd, probe.Ring, probe.Indexer), rest: nth(3, probe.RingAppend, pod("a"), typed("MODIFIED"))},
		{Say: "Now the server that hangs dies, and its connections break. The informer keeps its objects, and the version that it has reached.",
			Look: look(probe.Wire, probe.Reflector, probe.Indexer), rest: at(probe.ReflectorWatchEnded, by("informer"))},
		{Say: "The informer connects again, and reaches the server that the stage shows. It asks to resume after its last version.",
			Question: ask("This server has never sent the informer anything. What does it answer?", 1, "410: it does not know that version", "The three changes, from its ring", "The whole state, as to a new client").
				because("The version is a revision of etcd, and means the same at every server whose ring reaches back to it."),
			Look: look(probe.Ring, probe.Watcher, probe.Wire, probe.Reflector), rest: at(probe.WatcherInterval, toInformer)},
		{Say: "The server sends the informer the three changes, in order, each once. The informer has not listed.",
			Look: look(probe.Watcher, probe.Wire, probe.Reflector, probe.Indexer), rest: at(probe.IndexerUpdated, by("informer"), newest)},
	},
	play: playFailOver,
}

func playFailOver(s *stagehand) (string, error) {
	moved := s.Log.Last()
	hang, end, err := s.Machine.OtherServer(func() error {
		return tried(func() {
			ok(s.Sandbox.Turn(s.ctx, sandbox.Knob{Name: "line.drop", Target: informerAgent}))
			s.awaitAfter(moved, "the informer's watch", of(probe.ReflectorWatching, "informer"))
			// The other server knows no version before its own start. If etcd was ahead of the informer then, it answers 410, and
			// the informer lists. After that, it hears of what is written through its watch.
			made := s.create(s.name(1), nowhere, nil)
			s.awaitAfter(moved, "the informer at the other server", func(r *probe.Record) bool {
				return r.Subject == "informer" && r.RV >= made
			})
			written := s.Log.Last()
			must(s.delete(s.name(1)))
			s.awaitAfter(written, "the informer's store", func(r *probe.Record) bool {
				return r.Point == probe.IndexerUpdated && r.Subject == "informer" && about(r, s.name(1))
			})
		})
	})
	must(err)
	s.curtain()
	var rv, last uint64
	err = tried(func() {
		rv = s.create(s.name(0), nowhere, nil)
		s.await("the informer's store", func(r *probe.Record) bool {
			return r.Point == probe.IndexerUpdated && r.Subject == "informer" && r.RV == rv
		})
		s.step("the informer has the pod, at %d, from a server that is not drawn", rv)
		hang()
		last = s.churn(s.name(0), 3)
		s.step("that server hangs; the pod has changed up to %d", last)
	})
	end()
	must(err)
	s.step("that server is dead")
	resumed := s.await("the informer's next watch", func(r *probe.Record) bool {
		return r.Point == probe.WatcherInterval && r.Seq > s.from && s.serves(r.Subject)
	})
	s.key = resumed.Seq
	s.await("the informer's store", func(r *probe.Record) bool {
		return r.Point == probe.IndexerUpdated && r.Subject == "informer" && r.RV == last
	})
	var told []uint64
	for i := range s.seen {
		if r := &s.seen[i]; r.Point == probe.IndexerUpdated && r.Subject == "informer" && about(r, s.name(0)) {
			told = append(told, r.RV)
		}
	}
	if want := []uint64{rv, last - 2, last - 1, last}; !slices.Equal(told, want) || s.listsOfInformer() > 0 {
		return "", fmt.Errorf("the informer was told %v, want %v, and listed %d times", told, want, s.listsOfInformer())
	}
	s.step("the informer has resumed at the server that is drawn: %v", told)
	return fmt.Sprintf("The informer had %d from one server when that hung. It resumed at another one after %d, and received %d, %d and %d: nothing was lost, nothing came twice, and it did not list. Versions are revisions of etcd, so all servers count alike. Had the ring of the second server not reached back to %d, it would have answered 410.",
		rv, rv, told[1], told[2], told[3], rv), nil
}

// serves reports whether a watcher was opened by the informer since the story began.
func (s *stagehand) serves(watcher string) bool {
	return s.count(func(r *probe.Record) bool {
		return r.Subject == watcher && r.Point == probe.WireOpened && says(informerAgent+" ")(nil, r)
	}) > 0
}
