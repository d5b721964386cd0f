package scenario

import (
	"fmt"
	"time"

	"listwatch/internal/probe"
)

var slowHandler = Story{
	ID:      "slow-handler",
	Title:   "A slow handler, and what it costs",
	Symptom: "The memory of a controller grows and grows, and no metric of the API server shows why.",
	Watch:   "The listener called slow: its pending ring fills, the only queue without a bound. The other handler does not wait for it.",
	Chapter: "12-processor",
	Thread:  "kubernetes/client-go#1326",
	Beats:   beatsOfSlowHandler,
	play:    playSlowHandler,
}

func playSlowHandler(s *stagehand) (string, error) {
	const slow, quick, n = "slow", "observer", 20
	s.turn("handler.add", slow, "")
	s.turn("handler.delay", slow, "1s")
	s.step("added a handler that takes a second for each call")
	last := s.churn(s.name(0), n)
	s.step("changed a pod %d times", n)
	done := s.await("the other handler to be done", func(r *probe.Record) bool {
		return r.Point == probe.HandlerReturned && r.Subject == quick && r.RV == last
	})
	waiting := s.await("the last change in the pending ring", func(r *probe.Record) bool {
		return r.Point == probe.PendingPushed && r.Subject == slow && r.RV == last
	})
	s.key = waiting.Seq
	if waiting.Args[0] < n/2 {
		return "", fmt.Errorf("only %d wait in the pending ring", waiting.Args[0])
	}
	committed := s.await("its commit", func(r *probe.Record) bool { return r.Point == probe.TxnCommitted && r.RV == last })
	s.pause(2 * time.Second)
	must(s.read())
	calls := s.count(of(probe.HandlerReturned, slow))
	s.step("two seconds later: %d calls are over, the rest wait", calls)
	return fmt.Sprintf("The observer had the last change %s after its commit. By then %d changes waited in the pending ring of the slow handler, and two seconds later it had finished %d calls. Nothing else waited for it: not the queue, not the stream, not the server. Its pending changes take memory, without a bound.",
		(done.Time - committed.Time).Round(10*time.Microsecond), waiting.Args[0], calls), nil
}
