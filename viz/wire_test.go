package viz

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/observe/probe"
	"listwatch/internal/play/wiretap"
	"listwatch/viz/inspector"
)

func TestEachStreamOnTheWireIsGivenTheWatcherThatFeedsIt(t *testing.T) {
	log, pods := newLog()
	streams := []wiretap.Stream{{ID: 1, Request: requestOf("me", "/a")}, {ID: 2, Request: requestOf("me", "/a")},
		{ID: 3, Request: requestOf("you", "/b")}}
	ui := New(Config{Log: log, Wire: func() []wiretap.Stream { return streams }})
	for _, watcher := range []struct{ id, opened string }{{"w1", "me /a"}, {"w2", "me /a"}, {"w3", "kubectl /b"}} {
		p := pods.Subject(watcher.id)
		p.Text(probe.WatcherAdded, "everything", "/registry/pods/", 5, 10)
		p.Text(probe.WireOpened, watcher.opened, "", 0)
	}
	for query, want := range map[string]string{
		"?watcher=w1":                "pods w1 me /a 1\n",
		"?resource=pods&watcher=w2":  "pods w2 me /a 2\n",
		"?watcher=w3":                "",
		"?resource=nodes&watcher=w2": "",
		"":                           "pods w1 me /a 1\npods w2 me /a 2\n  you /b 3\n",
	} {
		var streams []inspector.Stream
		err := json.Unmarshal(ask(ui, "GET", "/viz/wire"+query, "").Body.Bytes(), &streams)
		got := ""
		for _, each := range streams {
			got += fmt.Sprintln(each.Resource, each.Watcher, each.OpenedBy, each.Wire.ID)
		}
		assert.True(t, got == want && err == nil, "%q: %v\ngot  %s\nwant %s", query, err, got, want)
	}
	assert.Equal(t, ask(New(Config{Log: log}), "GET", "/viz/wire", "").Code, http.StatusNotFound, "without a wire")
}

func requestOf(agent, path string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: x\r\nUser-Agent: " + agent + "\r\nAuthorization: Bearer s3cret\r\n\r\n"
}

func TestWhatOpensDoorsIsNotOnTheWire(t *testing.T) {
	log, _ := newLog()
	stream := wiretap.Stream{Request: requestOf("me", "/api/v1/secrets?watch=1"), Chunks: []wiretap.Chunk{
		{Data: `"s3cret"}}}`}}}
	ui := New(Config{Log: log, Wire: func() []wiretap.Stream { return []wiretap.Stream{stream} }})
	got := ask(ui, "GET", "/viz/wire", "").Body.String()
	if strings.Contains(got, "s3cret") || !strings.Contains(got, `"data":"***"`) || !strings.Contains(got,
		`Authorization: ***\r\n`) {
		t.Errorf("got %s", got)
	}
}
