package lens

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"listwatch/internal/check/assert"
	"listwatch/internal/play/wiretap"
)

// tale tells the findings what a client does.
type tale struct {
	*world
	client, resource string
}

// world is what the tales of several clients have in common.
type world struct {
	f   *findings
	now time.Time
}

func newTale() *tale {
	return &tale{&world{f: newFindings(), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}, "c/1 (linux)", "pods"}
}

// as is the tale of another client, or of another resource, in the same world.
func (t *tale) as(client, resource string) *tale { return &tale{t.world, client, resource} }

func (t *tale) wait(d time.Duration) {
	for end := t.now.Add(d); t.now.Before(end); {
		t.now = t.now.Add(min(time.Second, end.Sub(t.now)))
		t.f.tick(t.now)
	}
}

// ask begins a request.
func (t *tale) ask(ask Ask, status int) *request {
	ask.Client, ask.Resource, ask.Method = t.client, t.resource, cmp.Or(ask.Method, http.MethodGet)
	r := t.f.begin(ask, "", t.now)
	t.f.answered(r, status, time.Second, t.now)
	return r
}

func (t *tale) end(r *request, status int) {
	t.f.end(r, end{Status: status, Cause: serverEnded}, t.now)
}

func (t *tale) list(version, got string) {
	r := t.ask(Ask{Version: version}, http.StatusOK)
	t.f.end(r, end{Status: http.StatusOK, RV: got}, t.now)
}

// watch asks for a watch at a version, which is told the versions and ends two seconds later.
func (t *tale) watch(ask Ask, versions ...string) {
	ask.Watch = true
	r := t.ask(ask, http.StatusOK)
	for _, rv := range versions {
		t.frame(r, "MODIFIED", rv)
	}
	t.wait(2 * time.Second)
	t.end(r, http.StatusOK)
}

func (t *tale) frame(r *request, event, rv string) {
	t.f.frame(r, wiretap.Event{Type: event, Key: "default/a", RV: rv}, t.now)
}

// gone asks for a watch that is told 410 in its first frame.
func (t *tale) gone(ask Ask) {
	ask.Watch = true
	r := t.ask(ask, http.StatusOK)
	t.f.frame(r, wiretap.Event{Type: "ERROR", Code: http.StatusGone}, t.now)
	t.end(r, http.StatusOK)
}

// put writes the object default/a, which has the version rv afterwards; some time passes.
func (t *tale) put(status int, rv string, passes time.Duration) {
	r := t.ask(Ask{Method: http.MethodPut, Namespace: "default", Name: "a"}, status)
	t.f.end(r, end{Status: status, RV: rv}, t.now)
	t.now = t.now.Add(passes)
}

// times has a client do the same n times; its argument is a version that is new each time.
func times(n int, do func(rv string)) {
	for i := range n {
		do(fmt.Sprint(100 + i))
	}
}

// TestFindings tells each story once until shortly before it is a habit, and then to its end. The twin does nearly the
// same, as long as it likes, and is no finding.
func TestFindings(t *testing.T) {
	told := map[string]bool{}
	for _, c := range []struct {
		id, sentence        string
		before, after, twin func(*tale)
	}{
		{id: "no-bookmarks", sentence: "c relists pods after every 410 (2 times so far), because its watches ask for " +
			"no bookmarks: while nothing of its own changes, the version it knows grows too old.",
			before: func(s *tale) {
				s.list("", "5")
				s.gone(Ask{Version: "5"})
				s.list("", "50")
				s.gone(Ask{Version: "50"})
			},
			after: func(s *tale) { s.list("", "90") },
			twin: func(s *tale) {
				times(9, func(rv string) { s.list("", rv); s.gone(Ask{Version: rv, Bookmarks: true}) })
			}},
		{id: "polls", sentence: `c lists all pods every 100ms at resourceVersion "", which is a consistent read each ` +
			"time, and never watches.",
			before: func(s *tale) { times(15, func(rv string) { s.list("", rv); s.wait(100 * time.Millisecond) }) },
			after:  func(s *tale) { s.list("", "9") },
			twin: func(s *tale) { // a command that lists at its beginning and its end, and is run again
				times(20, func(rv string) {
					s.list("", rv)
					s.wait(time.Second)
					s.list("", rv)
					s.wait(10 * time.Minute)
				})
			}},
		{id: "polls-cache", sentence: "c lists all pods every 3s at resourceVersion 0, and never watches: each list " +
			"sends every object, changed or not, and may be older than the one before.",
			before: func(s *tale) { times(15, func(rv string) { s.list("0", rv); s.wait(3 * time.Second) }) },
			after:  func(s *tale) { s.list("0", "6") },
			twin:   func(s *tale) { times(9, func(rv string) { s.list("0", rv); s.wait(10 * time.Minute) }) }},
		{id: "no-initial-end", sentence: "c waits for the bookmark that ends the first state of pods, and it does " +
			"not ask for bookmarks (open for 5s): its informer never syncs.",
			before: func(s *tale) {
				s.frame(s.ask(Ask{Watch: true, InitialEvents: true}, 200), "ADDED", "5")
				s.wait(4 * time.Second)
			},
			after: func(s *tale) { s.wait(time.Second) },
			twin: func(s *tale) {
				s.ask(Ask{Watch: true, InitialEvents: true, Bookmarks: true}, 200)
				s.wait(50 * time.Second)
			}},
		{id: "two-informers", sentence: "c has 2 watches of pods open at once: two informers of one process, or two " +
			"processes of one name.",
			before: func(s *tale) {
				s.list("", "5")
				s.ask(Ask{Watch: true, Version: "5"}, 200)
				s.wait(time.Minute)
				s.ask(Ask{Watch: true, Version: "5"}, 200)
			},
			after: func(s *tale) { s.wait(2 * time.Second) },
			twin: func(s *tale) {
				s.ask(Ask{Watch: true, Version: "5"}, 200)
				s.ask(Ask{Watch: true, Version: "5", Labels: "app=web"}, 200)
				s.wait(time.Minute)
			}},
		{id: "watch-per-object", sentence: "c has 20 watches of pods open, each of one object: every change of any " +
			"pods is compared with each of them.",
			before: func(s *tale) { watchEach(s, minPerObject-1) },
			after:  func(s *tale) { s.ask(Ask{Watch: true, Version: "5", Fields: "metadata.name=z"}, 200) },
			twin: func(s *tale) {
				watchEach(s.as("d/1", "pods"), minPerObject-1)
				watchEach(s, minPerObject-1)
				watchEach(s.as("c/1 (linux)", "secrets"), minPerObject-1)
			}},
		{id: "slow-reader", sentence: "c reads its watch on pods too slowly: its connection has been full for 3s, " +
			"and the server may evict it.",
			before: func(s *tale) { s.ask(Ask{Watch: true, Version: "5"}, 200).writing.Store(s.now.UnixNano()) },
			after:  func(s *tale) { s.wait(3 * time.Second) }},
		{id: "gone-silent", sentence: "c has not come back for pods since its watch ended 2m0s ago (the server ended " +
			"it), although its other watches go on: what it knows of them grows old.",
			before: func(s *tale) {
				s.as("c/1 (linux)", "nodes").ask(Ask{Watch: true, Version: "5"}, 200)
				s.wait(time.Second)
				s.watch(Ask{Version: "5"}, "7")
				s.wait(119 * time.Second)
			},
			after: func(s *tale) { s.wait(time.Second) },
			twin: func(s *tale) {
				s.watch(Ask{Version: "5"}, "7") // all of the process has ended
				s.as("d/1", "nodes").ask(Ask{Watch: true, Version: "5"}, 200)
				s.wait(time.Hour)
				s.as("c/1 (linux)", "nodes").ask(Ask{Watch: true, Version: "5"}, 200) // and was started again
				s.wait(time.Hour)
			}},
		{id: "starts-over", sentence: "c starts over again and again: 5 times within 1m0s it has left its watch on " +
			"pods and read the whole state again.",
			before: func(s *tale) { times(5, func(rv string) { crash(s, rv, 3*time.Second) }) },
			after:  func(s *tale) { s.list("0", "9") },
			twin:   func(s *tale) { times(9, func(rv string) { crash(s, rv, 20*time.Second) }) }},
		{id: "hot-loop", sentence: "c writes pods default/a in a hot loop: 30 times in 2.9s.",
			before: func(s *tale) { times(29, func(rv string) { s.put(200, rv, 100*time.Millisecond) }) },
			after:  func(s *tale) { s.put(200, "200", 0) },
			twin: func(s *tale) {
				lease := s.as("c/1 (linux)", "leases.coordination.k8s.io") // a leader election is no controller's work
				times(99, func(rv string) { lease.put(200, rv, 100*time.Millisecond) })
				times(99, func(rv string) { s.put(200, rv, time.Second) })
			}},
		{id: "answers-itself", sentence: "c answers its own writes: 10 times in 900ms the event of its last write of " +
			"pods default/a was all it was told before it wrote again.",
			before: func(s *tale) { echo(s, 10, 100*time.Millisecond, "") },
			after:  func(s *tale) { s.put(200, "300", 0) },
			twin: func(s *tale) {
				echo(s, 20, 100*time.Millisecond, "another's") // something else has happened to it each time
				echo(s, 29, time.Second, "")                   // a clock, and not the event, makes it write
			}},
		{id: "changes-nothing", sentence: "c writes pods default/a as it is already: 10 times in 9s its version has " +
			"stayed 7.",
			before: func(s *tale) { times(10, func(string) { s.put(200, "7", time.Second) }) },
			after:  func(s *tale) { s.put(200, "7", 0) },
			twin: func(s *tale) {
				times(30, func(rv string) { s.put(200, rv, time.Second); s.put(200, rv, time.Second) })
			}},
		{id: "same-conflict", sentence: "c tries to write the same pods default/a again after a 409: 5 times in 4s, " +
			"and has not read it in between, so that its version can only be the stale one.",
			before: func(s *tale) { times(4, func(string) { s.put(409, "", time.Second) }) },
			after:  func(s *tale) { s.put(409, "", 0) },
			twin: func(s *tale) {
				times(8, func(string) { s.put(409, "", 200*time.Millisecond) }) // its cache is being filled again
				times(30, func(rv string) {
					s.put(409, "", time.Second)
					get := s.ask(Ask{Namespace: "default", Name: "a"}, 200)
					s.f.end(get, end{Status: 200, RV: rv}, s.now)
				})
			}},
		{id: "fight", sentence: "d and c fight over pods default/a: they have written it by turns, 10 times in 10s.",
			before: func(s *tale) {
				s.as("e/1", "pods").put(200, "50", 0) // has made it, and is no party
				byTurns(s.as("d/1", "pods"), s, 5)
			},
			after: func(s *tale) { s.as("d/1", "pods").put(200, "300", 0) },
			twin: func(s *tale) {
				byTurns(s, s.as("d/1", "nodes"), 20)
				lease := "leases.coordination.k8s.io"
				byTurns(s.as("a/1", lease), s.as("b/1", lease), 20)
			}},
		{id: "jumps-forward", sentence: "c continues at version 40 of pods after a 410 for 5, without a list: it " +
			"loses what happened in between, deletions too.",
			before: func(s *tale) { s.list("", "5"); s.gone(Ask{Version: "5", Bookmarks: true}) },
			after:  func(s *tale) { s.watch(Ask{Version: "40"}) },
			twin: func(s *tale) {
				s.gone(Ask{Version: "5", Bookmarks: true})
				s.list("", "40")
				s.watch(Ask{Version: "40"})
			}},
		{id: "stale-again", sentence: "c asks for version 5 of pods again, 3 times in 0s, although it gets 410 each " +
			"time.",
			before: func(s *tale) {
				s.list("", "5")
				s.gone(Ask{Version: "5"})
				s.gone(Ask{Version: "5"})
				s.gone(Ask{Version: "5"})
			},
			after: func(s *tale) { s.gone(Ask{Version: "5"}) }},
		{id: "no-version", sentence: "c watches pods without a resourceVersion (2 times): each time the server asks " +
			"etcd how far it is, and sends every object again; a server of 1.27 to 1.29 may open a watch on etcd " +
			"for it.",
			before: func(s *tale) { s.watch(Ask{}, "7") },
			after:  func(s *tale) { s.watch(Ask{}, "7") },
			twin: func(s *tale) {
				times(9, func(rv string) { s.list("", rv); s.watch(Ask{Version: rv}, rv) })
			}},
		{id: "deaf-to-deletions", sentence: "c watches pods from 0 again after a watch has ended (2 times): it is " +
			"sent what exists, and never learns what was deleted meanwhile.",
			before: func(s *tale) { s.watch(Ask{Version: "0"}, "7"); s.watch(Ask{Version: "0"}, "8") },
			after:  func(s *tale) { s.watch(Ask{Version: "0"}, "9") },
			twin: func(s *tale) {
				s.watch(Ask{Version: "0"}, "7")
				times(9, func(rv string) { s.watch(Ask{Version: rv}, rv) })
			}},
		{id: "tweak", sentence: `c lists pods at version 5 and then watches from "" (2 times): something, such as a ` +
			"tweak of the list options, overrides the version of the watch.",
			before: func(s *tale) { s.list("0", "5"); s.watch(Ask{}, "6") },
			after:  func(s *tale) { s.watch(Ask{}, "6") }},
		{id: "ignores-retry-after", sentence: "c asks for pods again before the 1s that a 429 told it to wait are " +
			"over (2 times).",
			before: func(s *tale) { s.ask(Ask{}, 429); s.ask(Ask{}, 429) },
			after:  func(s *tale) { s.ask(Ask{}, 429) },
			twin:   func(s *tale) { times(9, func(string) { s.ask(Ask{}, 429); s.wait(time.Second) }) }},
		{id: "goes-back", sentence: "c resumes pods from version 5 although it was given 9 (2 times): the server " +
			"sends it again what it knows.",
			before: func(s *tale) {
				s.list("0", "5")
				s.watch(Ask{Version: "5"}, "7", "9")
				s.watch(Ask{Version: "5"}, "7", "9")
			},
			after: func(s *tale) { s.watch(Ask{Version: "5"}) }},
	} {
		told[c.id] = true
		t.Run(c.id, func(t *testing.T) {
			s := newTale()
			if c.twin != nil {
				c.twin(s)
				got := s.f.report().Findings
				assert.Equal(t, len(got), 0, "the twin: %+v", got)
			}
			s = newTale()
			c.before(s)
			if got := s.f.report().Findings; len(got) != 0 {
				t.Fatalf("too early: %+v", got)
			}
			c.after(s)
			got := s.f.report().Findings
			assert.True(t, len(got) == 1 && got[0].ID == c.id && got[0].Sentence == c.sentence,
				"got %+v, want %s: %s", got, c.id, c.sentence)
		})
	}
	for _, v := range verdicts {
		assert.True(t, told[v.id], "no story tells %s", v.id)
	}
}

// watchEach opens n watches, each of one object.
func watchEach(s *tale, n int) {
	for i := range n {
		s.ask(Ask{Watch: true, Version: "5", Fields: fmt.Sprint("metadata.name=", i)}, http.StatusOK)
	}
}

// crash is a client that lists, watches, and dies after a while.
func crash(s *tale, rv string, after time.Duration) {
	s.list("0", rv)
	r := s.ask(Ask{Watch: true, Version: rv}, http.StatusOK)
	s.wait(after)
	s.f.end(r, end{Status: http.StatusOK, Cause: clientLeft}, s.now)
}

// echo is a client that watches what it writes, n times, and writes it again a while after the event of its last write,
// or after another's event.
func echo(s *tale, n int, after time.Duration, others string) {
	r := s.ask(Ask{Watch: true, Version: "5"}, http.StatusOK)
	times(n, func(rv string) {
		s.put(http.StatusOK, rv, 0)
		s.frame(r, "MODIFIED", rv)
		if others != "" {
			s.frame(r, "MODIFIED", rv+"0")
		}
		s.now = s.now.Add(after)
	})
	s.f.end(r, end{Status: http.StatusOK, Cause: clientLeft}, s.now)
}

// TestAClientMayWriteBeforeTheLensHasNoted has a client that answers itself so quickly that the lens notes each
// event, and each answer to a write, after the next write has begun.
func TestAClientMayWriteBeforeTheLensHasNoted(t *testing.T) {
	s := newTale()
	watch := s.ask(Ask{Watch: true, Version: "5"}, http.StatusOK)
	put := Ask{Method: http.MethodPut, Namespace: "default", Name: "a"}
	var last *request
	times(minRepeats+2, func(rv string) {
		next := s.ask(put, http.StatusOK)
		if last != nil {
			s.f.end(last, end{Status: http.StatusOK, RV: last.Version}, s.now)
			s.f.frame(watch, wiretap.Event{Type: "MODIFIED", Key: "default/a", RV: last.Version},
				s.now.Add(-time.Millisecond))
		}
		last = next
		last.Version = rv // of the answer
		s.now = s.now.Add(2 * time.Millisecond)
	})
	got := s.f.report().Findings
	assert.True(t, len(got) == 1 && got[0].ID == "answers-itself", "got %+v", got)
}

// byTurns has two clients write an object, n times each.
func byTurns(one, other *tale, n int) {
	times(n, func(rv string) { one.put(200, rv+"1", time.Second); other.put(200, rv+"2", time.Second) })
}

// TestAGoodInformerIsLeftAlone plays what client-go does when all is well, and when the server has forgotten.
func TestAGoodInformerIsLeftAlone(t *testing.T) {
	s := newTale()
	for round := range 4 {
		base := 100 * round
		rv := func(n int) string { return fmt.Sprint(base + n) }
		first := s.ask(Ask{Watch: true, InitialEvents: true, Bookmarks: true}, 200)
		s.frame(first, "ADDED", rv(1))
		s.f.frame(first, wiretap.Event{Type: "BOOKMARK", RV: rv(5), InitialEnd: true}, s.now)
		s.frame(first, "MODIFIED", rv(6))
		s.wait(8 * time.Minute)
		s.frame(first, "MODIFIED", rv(7)) // too late to have been read when the next begins
		s.end(first, 200)
		s.watch(Ask{Version: rv(6), Bookmarks: true}, rv(7), rv(8), rv(9))
		s.watch(Ask{Version: rv(9), Bookmarks: true})
		s.gone(Ask{Version: rv(9), Bookmarks: true})
	}
	got := s.f.report().Findings
	assert.Equal(t, len(got), 0, "got %+v", got)
}

// TestWhatFillsAConnectionHasNotBeenRead has a client resume from what it has read: the rest was on its way.
func TestWhatFillsAConnectionHasNotBeenRead(t *testing.T) {
	s := newTale()
	s.list("0", "5")
	times(3, func(string) {
		r := s.ask(Ask{Watch: true, Version: "5"}, http.StatusOK)
		s.frame(r, "MODIFIED", "9")
		r.writing.Store(s.now.UnixNano())
		s.wait(2 * time.Second)
		s.end(r, http.StatusOK)
	})
	got := s.f.report().Findings
	assert.True(t, len(got) == 1 && got[0].ID == "slow-reader", "got %+v", got)
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	s := newTale()
	for i := range maxTrails + 50 {
		ask := Ask{Labels: fmt.Sprint("app=", i), Watch: true}
		s.end(s.ask(ask, 200), 200)
		s.end(s.ask(ask, 200), 200)
		s.end(s.ask(Ask{Method: http.MethodPut, Name: fmt.Sprint("p", i)}, 200), 200)
	}
	f := s.f
	times(2*maxWrites, func(rv string) { s.put(200, rv, 0) })
	if len(f.trails) > maxTrails || len(f.running) > 0 || len(f.said) > maxFindings || len(f.objects) > maxObjects {
		t.Errorf("got %d trails, %d requests, %d findings, %d objects", len(f.trails), len(f.running), len(f.said),
			len(f.objects))
	}
	for _, t1 := range f.trails {
		assert.True(t, len(t1.rows) <= maxSteps && len(t1.open) == 0,
			"%d lists and watches, %d open ones are kept of %s", len(t1.rows), len(t1.open), t1.client)
	}
	for key, o := range f.objects {
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
		assert.Equal(t, askPath(path), want, path)
	}
}
