package lens

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"listwatch/internal/play/wiretap"
)

// tale tells the findings what a client does.
type tale struct {
	f    *findings
	now  time.Time
	last uint64
}

func newTale() *tale {
	return &tale{f: newFindings(), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

func (t *tale) wait(d time.Duration) {
	for end := t.now.Add(d); t.now.Before(end); {
		t.now = t.now.Add(min(time.Second, end.Sub(t.now)))
		t.f.tick(t.now)
	}
}

// ask begins a request of the client "c/1" for pods.
func (t *tale) ask(ask Ask, status int) *request {
	t.last++
	ask.Client, ask.Resource = "c/1 (linux)", "pods"
	if ask.Method == "" {
		ask.Method = http.MethodGet
	}
	r := t.f.begin(t.last, ask, t.now)
	r.answered(status, time.Second, t.now)
	return r
}

func (t *tale) end(r *request, status int) { r.end(end{Status: status, Cause: serverEnded}, t.now) }

func (t *tale) list(version, got string) {
	t.ask(Ask{Version: version}, http.StatusOK).end(end{Status: http.StatusOK, List: wiretap.ListHead{RV: got}}, t.now)
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
	r.frame(wiretap.Event{Type: event, Key: "default/a", RV: rv}, t.now)
}

// gone asks for a watch that is told 410 in its first frame.
func (t *tale) gone(ask Ask) {
	ask.Watch = true
	r := t.ask(ask, http.StatusOK)
	r.frame(wiretap.Event{Type: "ERROR", Code: http.StatusGone}, t.now)
	t.end(r, http.StatusOK)
}

// TestFindings tells each story once until shortly before it is a habit, and then to its end.
func TestFindings(t *testing.T) {
	for _, c := range []struct {
		id, sentence  string
		before, after func(*tale)
	}{
		{"no-bookmarks", "c relists pods after every 410 (2 times so far), because its watches ask for no bookmarks: " +
			"while nothing of its own changes, the version it knows grows too old.",
			func(s *tale) {
				s.list("", "5")
				s.gone(Ask{Version: "5"})
				s.list("", "50")
				s.gone(Ask{Version: "50"})
			}, func(s *tale) { s.list("", "90") }},
		{"polls",
			`c lists all pods every 1m0s at resourceVersion "", which is a consistent read each time, and never watches.`,
			func(s *tale) { s.list("", "5"); s.wait(time.Minute); s.list("", "6"); s.wait(time.Minute) },
			func(s *tale) { s.list("", "6") }},
		{"no-initial-end", "c waits for the bookmark that ends the first state of pods, and it does not ask for " +
			"bookmarks (open for 5s): its informer never syncs.",
			func(s *tale) {
				s.frame(s.ask(Ask{Watch: true, InitialEvents: true}, 200), "ADDED", "5")
				s.wait(4 * time.Second)
			}, func(s *tale) { s.wait(time.Second) }},
		{"two-informers",
			"c has 2 watches of pods open at once: two informers of one process, or two processes of one name.",
			func(s *tale) {
				s.list("", "5")
				s.ask(Ask{Watch: true, Version: "5"}, 200)
				s.wait(time.Minute)
				s.ask(Ask{Watch: true, Version: "5"}, 200)
			}, func(s *tale) { s.wait(2 * time.Second) }},
		{"slow-reader", "c reads its watch on pods too slowly: its connection has been full for 3s, and the server " +
			"may evict it.",
			func(*tale) {}, func(s *tale) { s.ask(Ask{Watch: true, Version: "5"}, 200).stuck(3*time.Second, s.now) }},
		{"hot-loop", "c writes pods a in a hot loop: 30 times in 2.9s.",
			func(s *tale) {
				for range 29 {
					s.end(s.ask(Ask{Method: http.MethodPut, Name: "a"}, 200), 200)
					s.now = s.now.Add(100 * time.Millisecond)
				}
			}, func(s *tale) { s.ask(Ask{Method: http.MethodPut, Name: "a"}, 200) }},
		{"jumps-forward", "c continues at version 40 of pods after a 410 for 5, without a list: it loses what " +
			"happened in between, deletions too.",
			func(s *tale) { s.list("", "5"); s.gone(Ask{Version: "5", Bookmarks: true}) },
			func(s *tale) { s.watch(Ask{Version: "40"}) }},
		{"stale-again", "c asks for version 5 of pods again, 3 times in 0s, although it gets 410 each time.",
			func(s *tale) {
				s.list("", "5")
				s.gone(Ask{Version: "5"})
				s.gone(Ask{Version: "5"})
				s.gone(Ask{Version: "5"})
			}, func(s *tale) { s.gone(Ask{Version: "5"}) }},
		{"no-version", "c watches pods without a resourceVersion (2 times): each time the server asks etcd how far " +
			"it is, and sends every object again; a server of 1.27 to 1.29 may open a watch on etcd for it.",
			func(s *tale) { s.watch(Ask{}, "7") }, func(s *tale) { s.watch(Ask{}, "7") }},
		{"tweak",
			`c lists pods at version 5 and then watches from "" (2 times): something, such as a tweak of the list options, overrides the version of the watch.`,
			func(s *tale) { s.list("0", "5"); s.watch(Ask{}, "6") }, func(s *tale) { s.watch(Ask{}, "6") }},
		{"ignores-retry-after", "c asks for pods again before the 1s that a 429 told it to wait are over (2 times).",
			func(s *tale) { s.ask(Ask{}, 429); s.ask(Ask{}, 429) }, func(s *tale) { s.ask(Ask{}, 429) }},
		{"goes-back", "c resumes pods from version 5 although it was given 9 (2 times): the server sends it again " +
			"what it knows.",
			func(s *tale) {
				s.list("0", "5")
				s.watch(Ask{Version: "5"}, "7", "9")
				s.watch(Ask{Version: "5"}, "7", "9")
			}, func(s *tale) { s.watch(Ask{Version: "5"}) }},
	} {
		t.Run(c.id, func(t *testing.T) {
			s := newTale()
			c.before(s)
			if got := s.f.view(s.now).Findings; len(got) != 0 {
				t.Fatalf("too early: %+v", got)
			}
			c.after(s)
			got := s.f.view(s.now).Findings
			if len(got) != 1 || got[0].ID != c.id || got[0].Sentence != c.sentence {
				t.Errorf("got %+v, want %s: %s", got, c.id, c.sentence)
			}
		})
	}
}

// TestAGoodInformerIsLeftAlone plays what client-go does when all is well, and when the server has forgotten.
func TestAGoodInformerIsLeftAlone(t *testing.T) {
	s := newTale()
	for round := range 4 {
		base := 100 * round
		rv := func(n int) string { return fmt.Sprint(base + n) }
		first := s.ask(Ask{Watch: true, InitialEvents: true, Bookmarks: true, Match: "NotOlderThan"}, 200)
		s.frame(first, "ADDED", rv(1))
		first.frame(wiretap.Event{Type: "BOOKMARK", RV: rv(5), InitialEnd: true}, s.now)
		s.frame(first, "MODIFIED", rv(6))
		s.wait(8 * time.Minute)
		s.frame(first, "MODIFIED", rv(7)) // too late to have been read when the next begins
		s.end(first, 200)
		s.watch(Ask{Version: rv(6), Bookmarks: true}, rv(7), rv(8), rv(9))
		s.watch(Ask{Version: rv(9), Bookmarks: true})
		s.gone(Ask{Version: rv(9), Bookmarks: true})
	}
	if got := s.f.view(s.now).Findings; len(got) != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	s := newTale()
	for i := range maxHistories + 50 {
		ask := Ask{Labels: fmt.Sprint("app=", i), Watch: true}
		s.end(s.ask(ask, 200), 200)
		s.end(s.ask(ask, 200), 200)
		s.end(s.ask(Ask{Method: http.MethodPut, Name: fmt.Sprint("p", i)}, 200), 200)
	}
	f := s.f
	if len(f.histories) > maxHistories || len(f.rows) > maxRows || len(f.said) > maxFindings {
		t.Errorf("got %d histories, %d rows, %d findings", len(f.histories), len(f.rows), len(f.said))
	}
	for i := range 2 * maxWritten {
		s.ask(Ask{Method: http.MethodPut, Name: fmt.Sprint("q", i)}, 200)
	}
	for _, h := range f.histories {
		if len(h.written) > maxWritten || len(h.watches) > 0 {
			t.Errorf("%d objects, %d watches are kept of %s", len(h.written), len(h.watches), h.client)
		}
	}
}

func TestPagesOfAListAreOneRow(t *testing.T) {
	s := newTale()
	first := end{Status: 200, Bytes: 10, List: wiretap.ListHead{RV: "5", Continue: true}}
	s.ask(Ask{Limit: "500"}, 200).end(first, s.now)
	second := end{Status: 200, Bytes: 3, List: wiretap.ListHead{RV: "5"}, Cause: serverEnded}
	s.ask(Ask{Limit: "500", Continue: true}, 200).end(second, s.now)
	s.now = s.now.Add(time.Second)
	s.ask(Ask{Watch: true, Version: "5"}, 200)
	rows := s.f.view(s.now).Rows
	if len(rows) != 2 || rows[1].Pages != 2 || rows[1].Bytes != 13 || rows[1].Newest != "5" || rows[1].Next != 1000 ||
		rows[1].End != serverEnded || rows[0].End != "" {
		t.Errorf("got %+v", rows)
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
		if got := askPath(path); got != want {
			t.Errorf("%s: got %+v, want %+v", path, got, want)
		}
	}
}
