package upstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	realstorage "k8s.io/apiserver/pkg/storage"

	storage "listwatch/chapters/01-storage"
)

// describeError returns the parts of an error that a client can see: status code, reason, when to come back, causes,
// and the message. Errors that the registry will translate are told by their kind.
func describeError(err error) string {
	var status apierrors.APIStatus
	var mine *storage.StorageError
	var real *realstorage.StorageError
	switch {
	case errors.As(err, &mine):
		return fmt.Sprintf("storage error: not found=%t %s %d", storage.IsNotFound(err), mine.Key, mine.ResourceVersion)
	case errors.As(err, &real):
		return fmt.Sprintf("storage error: not found=%t %s %d", realstorage.IsNotFound(err), real.Key,
			real.ResourceVersion)
	case !errors.As(err, &status):
		return "error without a status: " + err.Error()
	}
	s := status.Status()
	return describeStatus(&s)
}

func describeStatus(s *metav1.Status) string {
	text := fmt.Sprintf("%d %s %q", s.Code, s.Reason, s.Message)
	if s.Details != nil && s.Details.RetryAfterSeconds != 0 {
		text += " retry after " + describeRetry(s.Details.RetryAfterSeconds)
	}
	if s.Details != nil {
		for _, cause := range s.Details.Causes {
			text += fmt.Sprintf(" cause %s", cause.Type)
		}
	}
	if s.Continue != "" {
		text += " continue " + s.Continue
	}
	return text
}

// describeRetry takes the seconds up to three as one: a store draws one of them, so that not all come back at once.
func describeRetry(seconds int32) string {
	if seconds <= 3 {
		return "a moment"
	}
	return fmt.Sprint(seconds)
}

func describeEvent(e watch.Event) string {
	switch obj := e.Object.(type) {
	case *metav1.Status:
		return "ERROR " + describeStatus(obj)
	case *corev1.Pod:
		return describePod(string(e.Type), obj)
	}
	return fmt.Sprintf("%s %T", e.Type, e.Object)
}

// describePod names everything by which two pods of these tests can differ.
func describePod(prefix string, p *corev1.Pod) string {
	text := fmt.Sprintf("%s %s/%s rv=%s gen=%d node=%s labels=%v", prefix, p.Namespace, p.Name, p.ResourceVersion,
		p.Generation, p.Spec.NodeName, p.Labels)
	if len(p.Annotations) > 0 {
		text += fmt.Sprintf(" annotations=%v", p.Annotations)
	}
	return text
}

// stream collects what a watch says.
type stream struct {
	watch watch.Interface
	done  chan struct{} // closed by collect, with the end of the stream

	mu   sync.Mutex // guards the field below
	seen []string
}

// startStream begins a watch and collects its events. A watch that is refused gives a stream of that one error.
func startStream(ctx context.Context, s side, q query) *stream {
	st := &stream{done: make(chan struct{})}
	w, err := s.watch(ctx, q)
	if err != nil {
		st.seen = []string{"refused: " + describeError(err)}
		close(st.done)
		return st
	}
	st.watch = w
	go st.collect()
	return st
}

func (s *stream) collect() {
	defer close(s.done)
	for event := range s.watch.ResultChan() {
		s.say(describeEvent(unwrapped(event)))
	}
	s.say("closed")
}

func (s *stream) say(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, what)
}

// sofar returns a copy of what was said.
func (s *stream) sofar() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.seen...)
}

func (s *stream) stop() {
	if s.watch != nil {
		s.watch.Stop()
		<-s.done
	}
}

// dialogue is one watch, asked of both sides.
type dialogue struct {
	name         string
	ours, theirs *stream
}

// settle returns when all streams say the same as their counterparts and nothing more comes for a moment, or when that
// has not happened for long. The moment is there to catch an event too many: that none comes is no fact to wait for.
func settle(dialogues []*dialogue) {
	const quiet = 300 * time.Millisecond
	before := ""
	for deadline := time.Now().Add(2 * patience); time.Now().Before(deadline); time.Sleep(quiet) {
		all, equal := "", true
		for _, d := range dialogues {
			a, b := fmt.Sprint(d.ours.sofar()), fmt.Sprint(d.theirs.sofar())
			all += a + b
			equal = equal && a == b
		}
		if equal && all == before {
			return
		}
		before = all
	}
}

// unwrapped returns an event with the object itself, where upstream has put it into one that remembers its encodings.
func unwrapped(e watch.Event) watch.Event {
	if wrapped, ok := e.Object.(runtime.CacheableObject); ok {
		e.Object = wrapped.GetObject()
	}
	return e
}
