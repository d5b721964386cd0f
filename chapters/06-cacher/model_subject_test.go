package cacher

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/observe/rules"
)

// attributes are what selectors look at in this test: "app=1", "node=n2".
type attributes []string

// history is what the storage has gone through.
type history = rules.History[attributes]

func newHistory() *history {
	return &history{Text: func(state attributes) string { return strings.Join(state, " ") }}
}

func lastOf(h *history) uint64 {
	if versions := h.Versions(); len(versions) > 0 {
		return versions[len(versions)-1]
	}
	return 0
}

// question is what a watcher or a list asks for, in the words of the history and of the storage.
type question struct {
	view  rules.View[attributes]
	key   string // below the prefix
	asks  storage.ListOptions
	text  string
	least uint64 // a state that it is given must be as new as this
}

// ask returns a question without a version, about everything, a namespace or a pod, with or without a selector.
func ask(s step) question {
	scope := []string{"", "", "/default", "/kube-system", "/default/a"}[s.B%5]
	selector := [][3]string{{}, {"app=1", "app=1"}, {"node=n1", "", "spec.nodeName=n1"}}[s.A%3]
	q := question{key: scope, text: fmt.Sprintf("asking for %q, %q", scope, selector[0])}
	q.view.Matches = func(key string, state attributes) bool {
		return strings.HasPrefix("/"+key+"/", scope+"/") && (selector[0] == "" || slices.Contains(state, selector[0]))
	}
	q.asks = selecting("", selector[1], selector[2])
	q.asks.Recursive = scope != "/default/a"
	return q
}

// subject is one watcher, with what it does see.
type subject struct {
	question
	w      watch.Interface
	closed bool
	gone   error // refused with 410 or 504: what it missed it will list

	initial bool         // it asked for the state first
	state   []rules.Seen // what it was sent of it
	end     uint64       // the version at which that was, 0 while its end has not come
	seen    []rules.Seen // what came then
}

// read takes up to n events. Bookmarks but for the one that ends the initial events are left to the rules.
func (s *subject) read(n int) {
	for ; n > 0 && !s.closed; n-- {
		synctest.Wait()
		select {
		case event, ok := <-s.w.ResultChan():
			if !ok {
				s.closed = true
				return
			}
			s.note(event)
		default:
			return
		}
	}
}

func (s *subject) note(event watch.Event) {
	switch event.Type {
	case watch.Error:
		s.gone = apierrors.FromObject(event.Object)
	case watch.Bookmark:
		if accessor := must(meta.Accessor(
			event.Object)); accessor.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "" {
			s.end = must(strconv.ParseUint(accessor.GetResourceVersion(), 10, 64))
		}
	default:
		seen := look(string(event.Type), event.Object)
		if s.initial && s.end == 0 {
			s.state = append(s.state, seen)
			return
		}
		s.seen = append(s.seen, seen)
	}
}

// look returns what can be seen of a pod.
func look(typ string, object runtime.Object) rules.Seen {
	if cacheable, ok := object.(runtime.CacheableObject); ok {
		object = cacheable.GetObject()
	}
	p := object.(*corev1.Pod)
	rv := must(strconv.ParseUint(p.ResourceVersion, 10, 64))
	return rules.Seen{
		Type: typ, Key: p.Namespace + "/" + p.Name, RV: rv, State: "app=" + p.Labels["app"] + " node=" +
			p.Spec.NodeName,
	}
}

// check returns what is wrong, "" if nothing is.
func (s *subject) check(h *history) string {
	view := s.view
	switch {
	case s.gone != nil && !apierrors.IsResourceExpired(s.gone) && !apierrors.IsTimeout(s.gone):
		return s.text + " was refused: " + s.gone.Error()
	case s.gone != nil && len(s.seen) == 0:
		return ""
	case s.initial && s.end == 0 && s.closed:
		return "" // it will begin again: what it was sent is worth nothing
	case s.initial && s.end == 0:
		return s.text + " is still open, and its initial events have no end"
	case s.initial:
		if fault := wrongState(h, s.question, s.state, s.end); fault != "" {
			return fault
		}
		view.From = s.end
	}
	if fault := h.Check(view, s.seen, s.closed); fault != "" {
		return s.text + " " + fault
	}
	return ""
}

// wrongState returns what is wrong with a state that is said to be that at rv, "" if nothing is.
func wrongState(h *history, q question, state []rules.Seen, rv uint64) string {
	if rv < q.least {
		return fmt.Sprintf("%s, at %d or later: was given the state at %d", q.text, q.least, rv)
	}
	if want := h.StateAt(q.view, rv); !slices.Equal(state, want) {
		return fmt.Sprintf("%s: as the state at %d was given\n %v\nwant\n %v", q.text, rv, state, want)
	}
	return ""
}

// readList asks for a list, of one version or the other and in pages or not, and returns what is wrong with it. A pod
// is written between two pages.
func (f *fixture) readList(h *history, s step) string {
	q, exact := ask(s), uint64(0)
	switch s.B / 5 % 4 {
	case 0: // the newest
		q.least = lastOf(h)
	case 1: // any
		q.asks.ResourceVersion = "0"
	case 2: // one of the last
		if exact = recent(h, s.A/3); exact > 0 {
			q.asks.ResourceVersion, q.asks.ResourceVersionMatch = fmt.Sprint(exact), metav1.ResourceVersionMatchExact
		}
	case 3: // the newest, in pages
		q.least, q.asks.Predicate.Limit = lastOf(h), int64(1+s.A%3)
	}
	var found []rules.Seen
	var rv uint64
	for page := 0; ; page++ {
		list := &corev1.PodList{}
		err := f.store.GetList(f.ctx, prefix+q.key, q.asks, list)
		if apierrors.IsResourceExpired(err) || apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err) {
			return "" // an honest answer, which the other tests ask for where it belongs
		}
		if err != nil {
			return q.text + ": " + err.Error()
		}
		at := must(strconv.ParseUint(list.ResourceVersion, 10, 64))
		if page > 0 && at != rv || exact > 0 && at != exact {
			return fmt.Sprintf("%s: page %d is of %d, want %d", q.text, page, at, max(rv, exact))
		}
		rv = at
		for i := range list.Items {
			found = append(found, look("ADDED", &list.Items[i]))
		}
		if q.asks.Predicate.Continue = list.Continue; list.Continue == "" {
			return wrongState(h, q, found, rv)
		}
		f.write(h, step{"write", s.A + page, s.B})
	}
}

// recent returns one of the last six versions, 0 if there are none.
func recent(h *history, n int) uint64 {
	versions := h.Versions()
	if len(versions) == 0 {
		return 0
	}
	return versions[len(versions)-1-n%min(len(versions), 6)]
}
