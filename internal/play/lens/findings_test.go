package lens

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	listwatch "listwatch/chapters/09-listwatch"
	informer "listwatch/chapters/13-informer"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/play/wiretap"
)

// times has a program do the same n times.
func times(n int, do func()) {
	for range n {
		do()
	}
}

// TestFindings runs each program once until shortly before it is a habit, and then to its end. The twin does nearly the
// same, as long as it likes, and is no finding.
func TestFindings(t *testing.T) {
	ran := map[string]bool{}
	for _, c := range []struct {
		id, sentence        string // {old} is the version of the first list, {new} the newest that a program was given
		before, after, twin func(*program)
	}{
		{id: "no-bookmarks", sentence: "c relists pods after every 410 (2 times so far), because its watches ask for " +
			"no bookmarks: while nothing of its own changes, the version it knows grows too old.",
			before: func(p *program) { times(2, func() { relist(p, "") }) },
			after:  func(p *program) { p.list("") },
			twin:   func(p *program) { times(9, func() { relist(p, "&allowWatchBookmarks=true") }) }},
		{id: "polls", sentence: `c lists all pods every 100ms at resourceVersion "", which is a consistent read each ` +
			"time, and never watches.",
			before: func(p *program) { times(15, func() { p.list(""); p.wait(100 * time.Millisecond) }) },
			after:  func(p *program) { p.list("") },
			twin: func(p *program) { // a command that lists at its beginning and its end, and is run again
				times(9, func() { p.list(""); p.wait(time.Second); p.list(""); p.wait(5 * time.Minute) })
			}},
		{id: "polls-cache", sentence: "c lists all pods every 3s at resourceVersion 0, and never watches: each list " +
			"sends every object, changed or not, and may be older than the one before.",
			before: func(p *program) { times(15, func() { p.list("0"); p.wait(3 * time.Second) }) },
			after:  func(p *program) { p.list("0") },
			twin:   func(p *program) { times(17, func() { p.list("0"); p.wait(130 * time.Second) }) }},
		{id: "no-initial-end", sentence: "c waits for the bookmark that ends the first state of pods, and it does " +
			"not ask for bookmarks (open for 5s): its informer never syncs.",
			before: func(p *program) { p.open(watchList).next(); p.wait(4 * time.Second) },
			after:  func(p *program) { p.wait(time.Second) },
			twin: func(p *program) {
				s := p.open(watchList + "&allowWatchBookmarks=true")
				s.next()
				s.next()
				p.wait(time.Minute)
			}},
		{id: "two-informers", sentence: "c has 2 watches of pods open at once: two informers of one process, or two " +
			"processes of one name.",
			before: func(p *program) {
				p.open(from(p.new))
				p.wait(time.Minute)
				p.open(from(p.new))
			},
			after: func(p *program) { p.wait(2 * time.Second) },
			twin: func(p *program) {
				p.open(from(p.new))
				p.open(from(p.new) + "&labelSelector=app%3Dweb")
				p.wait(time.Minute)
			}},
		{id: "watch-per-object", sentence: "c has 20 watches of pods open, each of one object: every change of any " +
			"pods is compared with each of them.",
			before: func(p *program) { watchEach(p, minPerObject-1) },
			after:  func(p *program) { p.open("fieldSelector=metadata.name%3Dz") },
			twin: func(p *program) {
				for _, each := range []*program{p.as("d/1", "pods"), p, p.as("c/1 (linux)", "secrets")} {
					watchEach(each, minPerObject-1)
				}
			}},
		{id: "slow-reader", sentence: "c reads its watch on pods too slowly: its connection has been full for 3s, " +
			"and the server may evict it.",
			before: func(p *program) { p.open(from(p.new)); p.fill() },
			after:  func(p *program) { p.wait(3 * time.Second) },
			twin: func(p *program) {
				s := p.open(from(p.new))
				times(9, func() { p.fill(); p.wait(900 * time.Millisecond); s.next() })
			}},
		{id: "gone-silent", sentence: "c has not come back for pods since its watch ended 2m1s ago (the server ended " +
			"it), although its other watches go on: what it knows of them grows old.",
			before: func(p *program) {
				p.as("c/1 (linux)", "configmaps").open(long).follow()
				p.wait(time.Second)
				p.watch(from(p.new))
				p.wait(119 * time.Second)
			},
			after: func(p *program) { p.wait(2 * time.Second) },
			twin: func(p *program) {
				p.watch(from(p.new)) // all of the process has ended
				p.as("d/1", "configmaps").open(long).follow()
				p.wait(10 * time.Minute)
				p.as("c/1 (linux)", "configmaps").open(long).follow() // and was started again
				p.wait(10 * time.Minute)
			}},
		{id: "starts-over", sentence: "c starts over again and again: 5 times within 1m0s it has left its watch on " +
			"pods and read the whole state again.",
			before: func(p *program) { times(5, func() { crash(p, 3*time.Second) }) },
			after:  func(p *program) { p.list("0") },
			twin:   func(p *program) { times(9, func() { crash(p, 20*time.Second) }) }},
		{id: "hot-loop", sentence: "c writes pods default/a in a hot loop: 30 times in 2.9s.",
			before: func(p *program) { times(29, func() { p.put(p.label(), 200, 100*time.Millisecond) }) },
			after:  func(p *program) { p.put(p.label(), 200, 0) },
			twin: func(p *program) {
				lease := p.as("c/1 (linux)", leases) // a leader election is no controller's work
				times(40, func() { lease.put(p.label(), 200, 100*time.Millisecond) })
				times(40, func() { p.put(p.label(), 200, time.Second) })
			}},
		{id: "answers-itself", sentence: "c answers its own writes: 10 times in 900ms the event of its last write of " +
			"pods default/a was all it was told before it wrote again.",
			before: func(p *program) { echo(p, 10, 100*time.Millisecond, false) },
			after:  func(p *program) { p.put(p.label(), 200, 0) },
			twin: func(p *program) {
				echo(p, 20, 100*time.Millisecond, true) // something else has happened to it each time
				echo(p, 29, time.Second, false)         // a clock, and not the event, makes it write
			}},
		{id: "changes-nothing", sentence: "c writes pods default/a as it is already: 10 times in 9s its version has " +
			"stayed {new}.",
			before: func(p *program) { times(10, func() { p.put(same, 200, time.Second) }) },
			after:  func(p *program) { p.put(same, 200, 0) },
			twin: func(p *program) {
				times(30, func() {
					label := p.label()
					p.put(label, 200, time.Second)
					p.put(label, 200, time.Second)
				})
			}},
		{id: "same-conflict", sentence: "c tries to write the same pods default/a again after a 409: 5 times in 4s, " +
			"and has not read it in between, so that its version can only be the stale one.",
			before: func(p *program) { times(4, func() { p.put(stale, 409, time.Second) }) },
			after:  func(p *program) { p.put(stale, 409, 0) },
			twin: func(p *program) {
				times(8, func() { p.put(stale, 409, 200*time.Millisecond) }) // its cache is being filled again
				times(30, func() {
					p.put(stale, 409, time.Second)
					p.do(http.MethodGet, "a", "", "", 200)
				})
			}},
		{id: "fight", sentence: "d and c fight over pods default/a: they have written it by turns, 10 times in 10s.",
			before: func(p *program) {
				p.as("e/1", "pods").put(p.label(), 200, 0) // has written it once, and is no party
				byTurns(p.as("d/1", "pods"), p, 5)
			},
			after: func(p *program) { p.as("d/1", "pods").put(p.label(), 200, 0) },
			twin: func(p *program) {
				byTurns(p, p.as("d/1", "configmaps"), 20)
				byTurns(p.as("a/1", leases), p.as("b/1", leases), 20)
			}},
		{id: "jumps-forward", sentence: "c continues at version {new} of pods after a 410 for {old}, without a list: " +
			"it loses what happened in between, deletions too.",
			before: func(p *program) { relist(p, "&allowWatchBookmarks=true") },
			after:  func(p *program) { p.watch(from(p.new)) },
			twin: func(p *program) {
				relist(p, "&allowWatchBookmarks=true")
				p.watch(from(p.list("")))
			}},
		{id: "stale-again", sentence: "c asks for version {old} of pods again, 3 times in 0s, although it gets 410 " +
			"each time.",
			before: func(p *program) { relist(p, ""); p.gone(from(p.old)); p.gone(from(p.old)) },
			after:  func(p *program) { p.gone(from(p.old)) },
			twin: func(p *program) { // tries once more before it lists
				bookmarks := "&allowWatchBookmarks=true"
				times(9, func() { relist(p, bookmarks); p.gone(from(p.old) + bookmarks) })
			}},
		{id: "no-version", sentence: "c watches pods without a resourceVersion (2 times): each time the server asks " +
			"etcd how far it is, and sends every object again; a server of 1.27 to 1.29 may open a watch on etcd " +
			"for it.",
			before: func(p *program) { p.watch("") },
			after:  func(p *program) { p.watch("") },
			twin:   func(p *program) { times(9, func() { p.watch(from(p.list(""))) }) }},
		{id: "deaf-to-deletions", sentence: "c watches pods from 0 again after a watch has ended (2 times): it is " +
			"sent what exists, and never learns what was deleted meanwhile.",
			before: func(p *program) { times(2, func() { p.watch(from("0")) }) },
			after:  func(p *program) { p.watch(from("0")) },
			twin: func(p *program) {
				p.watch(from("0"))
				times(9, func() { p.watch(from(p.new)) })
			}},
		{id: "tweak", sentence: `c lists pods at version {old} and then watches from "" (2 times): something, such ` +
			"as a tweak of the list options, overrides the version of the watch.",
			before: func(p *program) { p.list("0"); p.watch("") },
			after:  func(p *program) { p.watch("") },
			twin: func(p *program) {
				p.list("0")
				p.watch("") // once may be an accident
				times(9, func() { p.watch(from(p.list("0"))) })
			}},
		{id: "ignores-retry-after", sentence: "c asks for pods again before the 1s that a 429 told it to wait are " +
			"over (2 times).",
			before: func(p *program) { times(2, p.refused) },
			after:  func(p *program) { p.refused() },
			twin: func(p *program) {
				times(9, func() { p.refused(); p.wait(800 * time.Millisecond) }) // as a reflector's backoff begins
			}},
		{id: "goes-back", sentence: "c resumes pods from version {old} although it was given {new} (2 times): the " +
			"server sends it again what it knows.",
			before: func(p *program) {
				p.list("0")
				p.change()
				p.change()
				times(2, func() { p.watch(from(p.old)) })
			},
			after: func(p *program) { p.watch(from(p.old)) },
			twin: func(p *program) {
				p.list("0")
				times(9, func() { p.change(); p.watch(from(p.new)) })
			}},
	} {
		ran[c.id] = true
		t.Run(c.id, func(t *testing.T) {
			inWorld(t, func(w *world) {
				c.twin(w.as("c/1 (linux)", "pods"))
				got := w.says()
				assert.Equal(t, 0, len(got), "the twin: %+v", got)
			})
			inWorld(t, func(w *world) {
				c.before(w.as("c/1 (linux)", "pods"))
				got := w.says()
				require.True(t, len(got) == 0, "too early: %+v", got)
				c.after(w.as("c/1 (linux)", "pods"))
				got = w.says()
				want := strings.NewReplacer("{old}", w.old, "{new}", w.new).Replace(c.sentence)
				assert.True(t, len(got) == 1 && got[0].ID == c.id && got[0].Sentence == want,
					"got %+v, want %s: %s", got, c.id, want)
			})
		})
	}
	for _, v := range verdicts {
		assert.True(t, ran[v.ID], "no program has %s", v.ID)
	}
}

// What the programs ask for and write.
const (
	watchList = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
	long      = "timeoutSeconds=36000"
	leases    = "leases.coordination.k8s.io"
	same      = `{"metadata":{"labels":{"n":"same"}}}`
	stale     = `{"metadata":{"resourceVersion":"1"}}`
)

func from(version string) string { return "resourceVersion=" + version }

// relist lists, and watches from there when the server has forgotten that.
func relist(p *program, more string) {
	version := p.list("")
	p.age()
	p.gone(from(version) + more)
}

// watchEach opens n watches, each of one object.
func watchEach(p *program, n int) {
	for i := range n {
		p.open(fmt.Sprint("fieldSelector=metadata.name%3D", i))
	}
}

// crash is a program that lists, watches, and dies after a while.
func crash(p *program, after time.Duration) {
	s := p.open(from(p.list("0")))
	p.wait(after)
	s.leave()
}

// echo is a program that watches what it writes, n times, and writes it again a while after the event of its last
// write, or after another's event.
func echo(p *program, n int, after time.Duration, others bool) {
	s := p.open(from(p.new))
	defer s.leave()
	times(n, func() {
		p.put(p.label(), http.StatusOK, 0)
		s.next()
		if others {
			p.change()
			s.next()
		}
		p.wait(after)
	})
}

// byTurns has two programs write an object, n times each.
func byTurns(one, other *program, n int) {
	times(n, func() {
		one.put(one.label(), 200, time.Second)
		other.put(other.label(), 200, time.Second)
	})
}

// idle returns a lens through which nothing passes, and its clock.
func idle() (*Lens, *clocktesting.FakeClock) {
	clk := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	return New(Config{Servers: []*url.URL{{Host: "server"}}, Clock: clk}), clk
}

// asked begins a request for pods.
func (l *Lens) asked(ask Ask) *exchange {
	ask.Client, ask.Method, ask.Resource = "c", cmp.Or(ask.Method, http.MethodGet), "pods"
	return &exchange{lens: l, request: l.begin(ask, "", "")}
}

// TestAClientMayWriteBeforeTheLensHasNoted has a client that answers itself so quickly that the lens notes each
// event, and each answer to a write, after the next write has begun.
func TestAClientMayWriteBeforeTheLensHasNoted(t *testing.T) {
	l, clk := idle()
	watch := l.asked(Ask{Watch: true, Version: "5"})
	var last *exchange
	for i := range minRepeats + 2 {
		next := l.asked(Ask{Method: http.MethodPut, Namespace: "default", Name: "a"})
		if last != nil {
			last.answered(http.StatusOK, nil)
			version := fmt.Sprint(100 + i)
			l.end(last.request, serverEnded, version, 0)
			l.frame(watch.request, wiretap.Event{Type: "MODIFIED", Key: "default/a", RV: version},
				clk.Now().Add(-time.Millisecond))
		}
		last = next
		clk.Step(2 * time.Millisecond)
	}
	got := l.Report().Findings
	assert.True(t, len(got) == 1 && got[0].ID == "answers-itself", "got %+v", got)
}

// TestAGoodInformerIsLeftAlone runs ours while all is well, while the server sends everyone away, and when it has
// forgotten what the informer knows.
func TestAGoodInformerIsLeftAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		client := listwatch.NewRESTClient(listwatch.Config{Base: &url.URL{Scheme: "http", Host: "lens"}, HTTP: w.client,
			UserAgent: "c/1", Clock: clock.RealClock{}})
		factory := informer.NewSharedInformerFactory(informer.FactoryConfig{Client: client, Clock: clock.RealClock{},
			UseWatchList: true})
		pods := factory.Pods().Informer()
		ctx, cancel := context.WithCancel(w.ctx)
		factory.Start(ctx)
		defer factory.Shutdown()
		defer cancel()
		gone := 0
		for range 2 {
			w.change()
			w.wait(8 * time.Minute)
			w.busy.Store(true)
			w.wait(10 * time.Minute) // every watch has ended
			w.age()
			w.busy.Store(false)
			w.wait(2 * time.Minute)
			pod, found, err := pods.GetIndexer().GetByKey("default/a")
			require.True(t, err == nil && found, "the pod is missing: %v", err)
			assert.Equal(t, w.new, pod.(*corev1.Pod).ResourceVersion)
			for _, trail := range w.lens.trails {
				for _, r := range trail.rows {
					if r.gone {
						gone++
					}
				}
			}
		}
		got := w.says()
		assert.True(t, len(got) == 0 && gone > 0, "got %+v after %d times 410", got, gone)
	})
}

// TestWhatFillsAConnectionHasNotBeenRead has a client resume from what it has read: the rest was on its way.
func TestWhatFillsAConnectionHasNotBeenRead(t *testing.T) {
	l, clk := idle()
	times(3, func() {
		x := l.asked(Ask{Watch: true, Version: "5"})
		x.answered(http.StatusOK, nil)
		l.frame(x.request, wiretap.Event{Type: "MODIFIED", Key: "default/a", RV: "9"}, clk.Now())
		x.writing.Store(clk.Now().UnixNano())
		clk.Step(2 * time.Second)
		l.tick(t.Context())
		l.end(x.request, serverEnded, "", 0)
	})
	got := l.Report().Findings
	assert.True(t, len(got) == 1 && got[0].ID == "slow-reader", "got %+v", got)
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	l, _ := idle()
	ask := func(a Ask) {
		x := l.asked(a)
		x.answered(http.StatusOK, nil)
		x.finish(t.Context())
	}
	for i := range maxTrails + 50 {
		for range 2 {
			ask(Ask{Labels: fmt.Sprint("app=", i), Watch: true})
		}
		ask(Ask{Method: http.MethodPut, Name: fmt.Sprint("p", i)})
	}
	times(2*maxWrites, func() { ask(Ask{Method: http.MethodPut, Name: "p"}) })
	assert.True(t, len(l.trails) <= maxTrails && len(l.running) <= 0 && len(l.said) <= maxFindings &&
		len(l.objects) <= maxObjects,
		"got %d trails, %d requests, %d findings, %d objects", len(l.trails), len(l.running), len(l.said),
		len(l.objects))
	for _, t1 := range l.trails {
		assert.True(t, len(t1.rows) <= maxSteps && len(t1.open) == 0,
			"%d lists and watches, %d open ones are kept of %s", len(t1.rows), len(t1.open), t1.client)
	}
	for key, o := range l.objects {
		assert.True(t, len(o.writes) <= maxWrites, "%d writes are kept of %s", len(o.writes), key)
	}
}

func TestAPathIsTakenApart(t *testing.T) {
	for path, want := range map[string]Ask{
		"/api/v1/pods": {Resource: "pods"},
		"/api/v1/namespaces/d/pods/a/exec": {Resource: "pods", Namespace: "d", Name: "a",
			Subresource: "exec"},
		"/apis/apps/v1/namespaces/d/deployments":         {Resource: "deployments.apps", Namespace: "d"},
		"/api/v1/namespaces/d":                           {Resource: "namespaces", Name: "d"},
		"/api/v1/namespaces/d/status":                    {Resource: "namespaces", Name: "d", Subresource: "status"},
		"/api/v1/watch/namespaces/d/pods":                {Resource: "pods", Namespace: "d", Watch: true},
		"/api/v1":                                        {},
		"/metrics":                                       {},
		"/apis/apps/v1":                                  {},
		"/api/v1/pods/" + strings.Repeat("x", 2*maxText): {Resource: "pods", Name: strings.Repeat("x", maxText)},
		"//api/v1//namespaces/proxy/services/a:80/proxy/b/": {Resource: "services", Namespace: "proxy", Name: "a:80",
			Subresource: "proxy"},
	} {
		assert.Equal(t, want, askPath(path), path)
	}
}
