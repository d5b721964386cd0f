package viz

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/observe/probe"
	"listwatch/internal/play/guest"
)

type guestThatNotes struct{ chosen []guest.Choice }

func (g *guestThatNotes) Choose(_ context.Context, c guest.Choice) error {
	g.chosen = append(g.chosen, c)
	return nil
}
func (g *guestThatNotes) State() any                                { return nil }
func (g *guestThatNotes) Offered(context.Context) ([]string, error) { return nil, nil }

func TestAChoiceIsReadAsEveryBody(t *testing.T) {
	g := &guestThatNotes{}
	ui := New(Config{Log: probe.NewLog(clock.RealClock{}, 8), Guest: g})
	for name, c := range map[string]struct {
		contentType, body string
		want              int
	}{
		"text/plain":    {"text/plain", `{"resources":["pods"]}`, 415},
		"unknown field": {"application/json", `{"resource":["pods"]}`, 400},
		"two values":    {"application/json", `{"resources":["pods"]}{"x":1}`, 400},
		"too large":     {"application/json", `{"namespace":"` + strings.Repeat("a", 2<<20) + `"}`, 413},
	} {
		r := httptest.NewRequest("POST", "http://localhost/viz/guest", strings.NewReader(c.body))
		r.Header.Set("Content-Type", c.contentType)
		r.RemoteAddr = "127.0.0.1:1"
		w := httptest.NewRecorder()
		ui.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s: got %d %s, want %d", name, w.Code, strings.TrimSpace(w.Body.String()), c.want)
		}
	}
	assert.True(t, len(g.chosen) == 0, "%v was chosen", g.chosen)
}
