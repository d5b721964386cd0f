package viz

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"listwatch/internal/probe"
)

func TestATraceParsesAndItsSpansAddUp(t *testing.T) {
	clk := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	log := probe.NewLog(clk, 64)
	pods := probe.New(log).Resource("pods")
	step := func(us int) { clk.SetTime(clk.Now().Add(time.Duration(us) * time.Microsecond)) }
	step(100)
	pods.Event(probe.TxnCommitted, "ADDED", "/registry/pods/default/a", 7)
	step(30)
	pods.Event(probe.TxnCommitted, "ADDED", "/registry/pods/default/b", 8)
	step(20)
	pods.Subject("w1").Event(probe.InputSent, "ADDED", "/registry/pods/default/a", 7, 1, 10)
	step(10)
	pods.Subject("w2").Event(probe.InputSent, "ADDED", "/registry/pods/default/a", 7, 1, 10)
	step(40)
	pods.Subject("w1").Event(probe.InputReceived, "ADDED", "/registry/pods/default/a", 7, 0, 10)
	step(5)
	pods.Subject("l1").Event(probe.HandlerCalled, `Added"<script>`, "default/a", 7)

	ui := New(Config{Log: log})
	answer := ask(ui, "GET", "/viz/trace?key=default/a", "")
	var file struct {
		TraceEvents []struct {
			Name, Ph string
			PID, TID int
			TS, Dur  float64
			Args     map[string]any
		}
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &file); err != nil {
		t.Fatalf("%v: %s", err, answer.Body)
	}
	spans := map[string][2]float64{} // start and duration by point and subject
	arrows := ""
	for _, e := range file.TraceEvents {
		switch e.Ph {
		case "X":
			spans[e.Name+" "+e.Args["subject"].(string)] = [2]float64{e.TS, e.Dur}
		case "s", "t", "f":
			arrows += e.Ph
		}
	}
	want := map[string][2]float64{
		"TxnCommitted ": {100, 0}, "InputSent w1": {100, 50}, "InputSent w2": {150, 10}, "InputReceived w1": {150, 50}, "HandlerCalled l1": {200, 5},
	}
	if len(spans) != len(want) {
		t.Errorf("spans: got %v, want %v", spans, want)
	}
	for name, span := range want {
		if spans[name] != span {
			t.Errorf("%s: got %v, want %v", name, spans[name], span)
		}
	}
	if sum := spans["InputSent w1"][1] + spans["InputReceived w1"][1] + spans["HandlerCalled l1"][1]; sum != 105 {
		t.Errorf("from commit to handler: the hops add up to %v us, want 105", sum)
	}
	if arrows != "stttf" {
		t.Errorf("arrows: got %s, want stttf", arrows)
	}
	if code := ask(ui, "GET", "/viz/trace", "").Code; code != http.StatusBadRequest {
		t.Errorf("nobody's trace: got %d, want 400", code)
	}
}
