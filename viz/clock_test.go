package viz

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/probe"
)

func TestTheClockMovesOnlyIfItCanAndOnlyForward(t *testing.T) {
	var moved time.Duration
	move := func(d time.Duration) { moved += d }
	tests := []struct {
		name    string
		advance func(time.Duration)
		body    string
		status  int
		moved   time.Duration
	}{
		{"a second", move, `{"advance":"1s"}`, http.StatusNoContent, time.Second},
		{"backwards", move, `{"advance":"-1s"}`, http.StatusBadRequest, 0},
		{"not at all", move, `{"advance":"0s"}`, http.StatusBadRequest, 0},
		{"a year", move, `{"advance":"8760h"}`, http.StatusBadRequest, 0},
		{"a word", move, `{"advance":"soon"}`, http.StatusBadRequest, 0},
		{"no JSON", move, `{`, http.StatusBadRequest, 0},
		{"a clock that runs", nil, `{"advance":"1s"}`, http.StatusConflict, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			moved = 0
			u := New(Config{Log: probe.NewLog(clock.RealClock{}, 8), AdvanceClock: test.advance})
			request := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/viz/clock", strings.NewReader(test.body))
			request.Header.Set("Content-Type", "application/json")
			answer := httptest.NewRecorder()
			u.ServeHTTP(answer, request)
			if answer.Code != test.status || moved != test.moved {
				t.Errorf("got %d and %v, want %d and %v: %s", answer.Code, moved, test.status, test.moved, answer.Body)
			}
		})
	}
}
