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
	"listwatch/internal/check/require"
	"listwatch/internal/observe/hold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/worldclock"
)

// holdable returns a page over a world in which nothing happens by itself.
func holdable(t *testing.T) (*UI, *probe.Log) {
	world := worldclock.New(time.Now())
	log := probe.NewLog(world, 64)
	return New(Config{Log: log, Hold: hold.New(hold.Config{Gate: log.Gate(), Clock: world,
		Patience: worldclock.New(time.Now()), Say: func(string) {}})}), log
}

// command sends one command.
func command(u *UI, path, body string) *httptest.ResponseRecorder {
	return ask(u, http.MethodPost, path, body, "Content-Type", "application/json")
}

func TestTheWorldIsHeldAndMovedByPosts(t *testing.T) {
	tests := []struct {
		path, body string
		status     int
		want       string // in the answer
	}{
		{"/viz/hold", `{"do":"hold"}`, http.StatusOK, `"held":true`},
		{"/viz/hold", `{"do":"hold","unattended":"15s"}`, http.StatusOK, `"unattended":"15s"`},
		{"/viz/hold", `{"do":"hold","station":"watcher","subject":"w3"}`, http.StatusOK,
			`"gates":[{"station":"watcher","subject":"w3"}]`},
		{"/viz/hold", `{"do":"step"}`, http.StatusOK, `"passed":0`},
		{"/viz/hold", `{"do":"walk","key":"default/a"}`, http.StatusOK, `"held":false`},
		{"/viz/hold", `{"do":"release"}`, http.StatusOK, `"held":false`},
		{"/viz/hold", `{"do":"release","station":"watcher"}`, http.StatusOK, `"held":false`},
		{"/viz/hold", `{"do":"leave","unattended":"10m"}`, http.StatusOK, `"unattended":"10m0s"`},
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
			u, _ := holdable(t)
			answer := command(u, test.path, test.body)
			assert.True(t, answer.Code == test.status && strings.Contains(answer.Body.String(), test.want),
				"got %d %s, want %d and %s", answer.Code, answer.Body, test.status, test.want)
		})
	}
}

func TestARecordingCannotBeHeld(t *testing.T) {
	u := New(Config{Log: probe.NewLog(clock.RealClock{}, 8), Replay: true})
	for _, request := range [][3]string{{"GET", "/viz/hold", ""}, {"POST", "/viz/hold", `{"do":"hold"}`},
		{"POST", "/viz/clock", `{"advance":"1s"}`}} {
		if answer := ask(u, request[0], request[1], request[2], "Content-Type",
			"application/json"); answer.Code != http.StatusConflict {
			t.Errorf("%v: got %d, want 409", request, answer.Code)
		}
	}
}

func TestAHeldPageIsHeldFromTheFirst(t *testing.T) {
	u, _ := holdable(t)
	page := ask(u, http.MethodGet, "/", "").Body.String()
	assert.True(t, strings.Contains(page, `data-mode="live"`), "nothing is held, and the body does not say live")
	command(u, "/viz/hold", `{"do":"hold"}`)
	page = ask(u, http.MethodGet, "/", "").Body.String()
	assert.True(t, strings.Contains(page, `data-mode="held"`), "the world is held, and the body does not say so")
}

// worldEvents opens the feed and returns what it says of the world.
func worldEvents(t *testing.T, u *UI) <-chan hold.Status {
	server := httptest.NewServer(u)
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/viz/events", nil)
	require.NoError(t, err)
	response, err := server.Client().Do(request)
	require.NoError(t, err)
	told := make(chan hold.Status, 100) // sent by the reader, closed by it
	go func() {
		defer close(told)
		var event string
		for in := bufio.NewScanner(response.Body); in.Scan(); {
			if name, ok := strings.CutPrefix(in.Text(), "event: "); ok {
				event = name
			}
			var status hold.Status
			if data, ok := strings.CutPrefix(in.Text(), "data: "); ok && event == "world" &&
				json.Unmarshal([]byte(data), &status) == nil {
				told <- status
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		for range told {
		}
		response.Body.Close()
		server.Close()
	})
	return told
}

func TestTheFeedSaysHowTheWorldIs(t *testing.T) {
	u, log := holdable(t)
	told := worldEvents(t, u)
	next := func(what string, wanted func(hold.Status) bool) {
		t.Helper()
		deadline := time.After(30 * time.Second)
		for {
			select {
			case status := <-told:
				if wanted(status) {
					return
				}
			case <-deadline:
				t.Fatalf("the feed does not say: %s", what)
			}
		}
	}
	next("as usual, at once", func(s hold.Status) bool { return !s.Held })
	command(u, "/viz/hold", `{"do":"hold"}`)
	next("held, with a page there", func(s hold.Status) bool { return s.Held && s.Attending == 1 })
	done := make(chan struct{}) // closed when the reporter has passed
	go func() {
		defer close(done)
		probe.New(log).At(probe.InputReceived, "default/a", 1)
	}()
	next("a goroutine stands there", func(s hold.Status) bool {
		return len(s.Waiting) == 1 &&
			s.Waiting[0].Key == "default/a"
	})
	next("the same a second later", func(s hold.Status) bool { return len(s.Waiting) == 1 && s.Waiting[0].Seconds > 1 })
	command(u, "/viz/hold", `{"do":"release"}`)
	next("let go", func(s hold.Status) bool { return !s.Held && len(s.Waiting) == 0 })
	<-done
}
