package lens

import (
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
)

// times calls do n times.
func times(n int, do func()) {
	for range n {
		do()
	}
}

// TestFindings runs each program in two parts: the lens must have no finding after the first part, and one after the
// second. The program's twin behaves almost the same, and must not cause a finding.
func TestFindings(t *testing.T) {
	ran := map[string]bool{}
	for _, c := range []struct {
		id, sentence        string // {old} is the version of the first list, {new} the newest one a program received
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
			twin: func(p *program) { // a command that lists at its beginning and its end, run again and again
				times(9, func() { p.list(""); p.wait(time.Second); p.list(""); p.wait(5 * time.Minute) })
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
				p.watch(from(p.new)) // the process watches for the last time
				p.as("d/1", "configmaps").open(long).follow()
				p.wait(10 * time.Minute)
				p.as("c/1 (linux)", "configmaps").open(long).follow() // a new process
				p.wait(10 * time.Minute)
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
			twin: func(p *program) { // the twin retries once before it lists
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
				p.watch("") // a single watch may be an accident
				times(9, func() { p.watch(from(p.list("0"))) })
			}},
	} {
		ran[c.id] = true
		t.Run(c.id, func(t *testing.T) {
			inWorld(t, func(w *world) {
				c.twin(w.as("c/1 (linux)", "pods"))
				assert.Equal(t, 0, len(w.says()), "findings about the twin")
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

// long is the query of a watch that does not time out during the test.
const long = "timeoutSeconds=36000"

func from(version string) string { return "resourceVersion=" + version }

// relist lists, makes the list's version expire on the server, and requires that a watch from that version gets 410.
func relist(p *program, more string) {
	version := p.list("")
	p.age()
	p.gone(from(version) + more)
}

// TestAGoodInformerIsLeftAlone runs our informer while the server answers, while the server refuses every request, and
// after the server has forgotten the informer's version. There must be no finding.
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
			w.wait(10 * time.Minute) // ends every watch
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

func TestWhatIsKeptIsBounded(t *testing.T) {
	l := New(Config{Servers: []*url.URL{{Host: "server"}}, Clock: clocktesting.NewFakeClock(time.Unix(1000, 0))})
	for i := range 2 * (maxTrails + 50) {
		ask := Ask{Client: "c", Method: http.MethodGet, Resource: "pods", Labels: fmt.Sprint("app=", i/2), Watch: true}
		x := &exchange{lens: l, request: l.begin(ask, "", "")}
		x.answered(http.StatusOK, nil)
		x.finish(t.Context())
	}
	assert.True(t, len(l.trails) <= maxTrails && len(l.running) <= 0 && len(l.said) <= maxFindings,
		"got %d trails, %d requests, %d findings", len(l.trails), len(l.running), len(l.said))
	for _, t1 := range l.trails {
		assert.True(t, len(t1.rows) <= maxSteps && len(t1.open) == 0,
			"%d lists and watches, %d open ones are kept of %s", len(t1.rows), len(t1.open), t1.client)
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
