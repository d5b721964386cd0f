package viz

import (
	"net/http"
	"testing"

	"listwatch/internal/observe/probe"
)

func TestEachStreamOnTheWireIsGivenTheWatcherThatFeedsIt(t *testing.T) {
	log, pods := newLog()
	streams := []WireStream{{"me /a", "first"}, {"me /a", "second"}, {"you /b", "third"}}
	ui := New(Config{Log: log, Wire: func() []WireStream { return streams }})
	for _, watcher := range []struct{ id, opened string }{{"w1", "me /a"}, {"w2", "me /a"}, {"w3", "kubectl /b"}} {
		p := pods.Subject(watcher.id)
		p.Text(probe.WatcherAdded, "everything", "/registry/pods/", 5, 10)
		p.Text(probe.WireOpened, watcher.opened, "", 0)
	}
	for query, want := range map[string]string{
		"?watcher=w1":                `[{"resource":"pods","watcher":"w1","openedBy":"me /a","wire":"first"}]`,
		"?resource=pods&watcher=w2":  `[{"resource":"pods","watcher":"w2","openedBy":"me /a","wire":"second"}]`,
		"?watcher=w3":                `[]`,
		"?resource=nodes&watcher=w2": `[]`,
		"": `[{"resource":"pods","watcher":"w1","openedBy":"me /a","wire":"first"},{"resource":"pods","watcher":"w2","openedBy":"me /a","wire":"second"},` +
			`{"resource":"","watcher":"","openedBy":"you /b","wire":"third"}]`,
	} {
		if got := ask(ui, "GET", "/viz/wire"+query, "").Body.String(); got != want {
			t.Errorf("%q:\ngot  %s\nwant %s", query, got, want)
		}
	}
	if got := ask(New(Config{Log: log}), "GET", "/viz/wire", "").Code; got != http.StatusNotFound {
		t.Errorf("without a wire: got %d", got)
	}
}

func TestWhatOpensDoorsIsNotOnTheWire(t *testing.T) {
	log, _ := newLog()
	type chunk struct {
		Data string `json:"data"`
	}
	bytes := struct {
		Request string  `json:"request"`
		Chunks  []chunk `json:"chunks"`
	}{"GET /api/v1/secrets?watch=1 HTTP/1.1\r\nAuthorization: Bearer s3cret\r\n", []chunk{{`"s3cret"}}}`}}}
	ui := New(Config{Log: log, Wire: func() []WireStream { return []WireStream{{"me /api/v1/secrets?watch=1", bytes}} }})
	want := `[{"resource":"","watcher":"","openedBy":"me /api/v1/secrets?watch=1","wire":{"chunks":[{"data":"***"}],"request":"GET /api/v1/secrets?watch=1 HTTP/1.1\r\nAuthorization: ***\r\n"}}]`
	if got := ask(ui, "GET", "/viz/wire", "").Body.String(); got != want {
		t.Errorf("got %s", got)
	}
}
