package viz

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/hold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/worldclock"
	"listwatch/viz/frame"
	"listwatch/viz/timeline"
)

// holdable returns a log, and a change to its page that adds a world in which nothing happens by itself.
func holdable() (*probe.Log, func(*frame.Page)) {
	world := worldclock.New(time.Now())
	log := probe.NewLog(world, 64)
	held := hold.New(hold.Config{Gate: log.Gate(), Clock: world, Patience: worldclock.New(time.Now()),
		Say: func(string) {}})
	return log, func(p *frame.Page) { p.Hold = timeline.Hold{World: held, Log: log} }
}

// command posts body as JSON to a path.
func command(u *UI, path, body string) *httptest.ResponseRecorder {
	return ask(u, http.MethodPost, path, body, "Content-Type", "application/json")
}

func TestTheWorldIsHeldAndMovedByPosts(t *testing.T) {
	tests := []struct {
		path, body string
		status     int
		want       string // part of the answer
	}{
		{"/viz/hold", `{"do":"hold"}`, http.StatusOK, `"held":true`},
		{"/viz/hold", `{"do":"hold","unattended":"15s"}`, http.StatusOK, `"unattended":"15s"`},
		{"/viz/hold", `{"do":"hold","station":"watcher","subject":"w3"}`, http.StatusOK,
			`"gates":[{"station":"watcher","subject":"w3"}]`},
		{"/viz/hold", `{"do":"step"}`, http.StatusOK, `"passed":0`},
		{"/viz/hold", `{"do":"walk","key":"default/a"}`, http.StatusOK, `"held":false`},
		{"/viz/hold", `{"do":"release"}`, http.StatusOK, `"held":false`},
		{"/viz/hold", `{"do":"release","station":"watcher"}`, http.StatusOK, `"held":false`},
		{"/viz/hold", `{"do":"hold","station":"ring"}`, http.StatusBadRequest, "under locks"},
		{"/viz/hold", `{"do":"hold","station":"moon"}`, http.StatusBadRequest, "moon"},
		{"/viz/hold", `{"do":"hold","unattended":"-1s"}`, http.StatusBadRequest, "unattended"},
		{"/viz/hold", `{"do":"stand still"}`, http.StatusBadRequest, "do: want"},
		{"/viz/hold", `{"do":"hold","who":"me"}`, http.StatusBadRequest, "who"},
		{"/viz/hold", `{`, http.StatusBadRequest, "body"},
		{"/viz/clock", `{"advance":"1s"}`, http.StatusOK, `"paused":false`},
		{"/viz/clock", `{"paused":true}`, http.StatusOK, `"paused":true`},
		{"/viz/clock", `{"speed":0.001}`, http.StatusOK, `"speed":0.001`},
		{"/viz/clock", `{"advance":"next"}`, http.StatusConflict, "no timer is set"},
		{"/viz/clock", `{"speed":0}`, http.StatusBadRequest, "speed"},
		{"/viz/clock", `{"speed":11}`, http.StatusBadRequest, "speed"},
		{"/viz/clock", `{"advance":"-1s"}`, http.StatusBadRequest, "advance"},
		{"/viz/clock", `{"advance":"0s"}`, http.StatusBadRequest, "advance"},
		{"/viz/clock", `{"advance":"8760h"}`, http.StatusBadRequest, "advance"},
		{"/viz/clock", `{"advance":"soon"}`, http.StatusBadRequest, "advance"},
		{"/viz/clock", `{}`, http.StatusBadRequest, "want speed"},
		{"/viz/clock", `{`, http.StatusBadRequest, "body"},
	}
	for _, test := range tests {
		t.Run(test.path+" "+test.body, func(t *testing.T) {
			u := show(holdable())
			answer := command(u, test.path, test.body)
			assert.True(t, answer.Code == test.status && strings.Contains(answer.Body.String(), test.want),
				"got %d %s, want %d and %s", answer.Code, answer.Body, test.status, test.want)
		})
	}
}

func TestARecordingCannotBeHeld(t *testing.T) {
	u := show(probe.NewLog(clock.RealClock{}, 8), func(p *frame.Page) { p.Replay = true })
	for _, request := range [][3]string{{"GET", "/viz/hold", ""}, {"POST", "/viz/hold", `{"do":"hold"}`},
		{"POST", "/viz/clock", `{"advance":"1s"}`}} {
		answer := ask(u, request[0], request[1], request[2], "Content-Type", "application/json")
		assert.True(t, answer.Code == http.StatusNotFound, "%v: got %d, want 404", request, answer.Code)
	}
}

func TestAHeldPageIsHeldFromTheFirst(t *testing.T) {
	u := show(holdable())
	page := ask(u, http.MethodGet, "/", "").Body.String()
	assert.True(t, strings.Contains(page, `data-mode="live"`), "nothing is held, and the body does not say live")
	command(u, "/viz/hold", `{"do":"hold"}`)
	page = ask(u, http.MethodGet, "/", "").Body.String()
	assert.True(t, strings.Contains(page, `data-mode="held"`), "the world is held, and the body does not say so")
}

func TestTheFeedSaysHowTheWorldIs(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		log, held := holdable()
		s := newStand(t, log, held)
		in := bufio.NewReader(s.get(t, "/viz/events", "").Body)
		says := func(what string, wanted func(hold.Status) bool) {
			t.Helper()
			for range 100 { // the feed sends bookmarks while nothing happens
				var status hold.Status
				m, ok := next(t, in)
				require.True(t, ok, "the feed ends before it says: %s", what)
				if m.event == "world" && json.Unmarshal([]byte(m.data), &status) == nil && wanted(status) {
					return
				}
			}
			t.Fatalf("the feed does not say: %s", what)
		}
		says("as usual, at once", func(s hold.Status) bool { return !s.Held })
		command(s.ui, "/viz/hold", `{"do":"hold"}`)
		says("held, with a page there", func(s hold.Status) bool { return s.Held && s.Attending == 1 })
		bubble.Go(t, "test.reporter", func(context.Context) { s.pods.At(probe.InputReceived, "default/a", 1) })
		says("a goroutine is held there", func(s hold.Status) bool {
			return len(s.Waiting) == 1 && s.Waiting[0].Key == "default/a"
		})
		says("the same a second later", func(s hold.Status) bool {
			return len(s.Waiting) == 1 && s.Waiting[0].Seconds > 1
		})
		command(s.ui, "/viz/hold", `{"do":"release"}`)
		says("released", func(s hold.Status) bool { return !s.Held && len(s.Waiting) == 0 })
	})
}
