//go:build js && wasm

// Command tab runs both halves and the small in-memory etcd in a dedicated Worker of a browser tab. The client half
// uses HTTP without sockets, and the page's requests arrive as messages. `make tab` builds it, and tab.js loads it.
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"syscall/js"

	"k8s.io/utils/clock"

	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/cmd/internal/machine"
	"listwatch/internal/server/mvcc"
	"listwatch/internal/server/pipenet"
	"listwatch/internal/server/tabhttp"
)

const (
	gcPercent   = 50       // the same as in cmd/viz
	memoryLimit = 96 << 20 // bytes of Go's memory; WebAssembly never returns any to the browser
	maxTraffic  = 100      // changes a second: more would starve all other work on the one thread
	logSize     = 6 << 10  // records: five minutes of the demo, and more than any story here writes
	ringSize    = 32       // events in each ring: so few that a story overflows it within logSize records
)

func main() {
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(memoryLimit)
	var network pipenet.Network
	ctx := context.Background() // never cancelled: when its page closes, a Worker ends without notice
	page := tabhttp.New(network.Client(), post)
	js.Global().Set("onmessage", js.FuncOf(func(_ js.Value, args []js.Value) any {
		page.Receive(ctx, messageOf(args[0].Get("data")))
		return nil
	}))
	err := machine.Serve(ctx, &machine.Host{
		Etcd:  machine.Etcd{Client: mvcc.New(clock.RealClock{})},
		Base:  &url.URL{Scheme: "http", Host: "localhost"},
		Lines: network.Lines,
		Serve: func(ctx context.Context, handler http.Handler, fail context.CancelCauseFunc) {
			post(tabhttp.Message{Kind: "ready"}) // the page begins to send requests while the caches fill
			network.Serve(ctx, handler, fail)
		},
		Say: func(line string) { fmt.Println(line) },
	}, machine.Options{
		Demo: true, Controllers: pipeline.Controllers, Switches: pipeline.Today(), Clock: "real", Etcd: "memory",
		MediaType: "application/vnd.kubernetes.protobuf", MaxTraffic: maxTraffic, LogSize: logSize,
		RingCapacity: ringSize,
	}, func() {})
	post(tabhttp.Message{Kind: "died", Reason: fmt.Sprint(err)})
}

// messageOf converts a message from the page.
func messageOf(data js.Value) tabhttp.Message {
	m := tabhttp.Message{ID: data.Get("id").Int(), Kind: data.Get("kind").String()}
	switch m.Kind {
	case tabhttp.Room:
		m.Room = int64(data.Get("room").Int())
	case tabhttp.Request:
		m.Method, m.URL = data.Get("method").String(), data.Get("url").String()
		m.Body = []byte(data.Get("body").String())
		m.Header = http.Header{}
		entries := data.Get("headers")
		for i := range entries.Length() {
			m.Header.Set(entries.Index(i).Index(0).String(), entries.Index(i).Index(1).String())
		}
	}
	return m
}

// post sends a message to the page.
func post(m tabhttp.Message) {
	data := map[string]any{"id": m.ID, "kind": m.Kind}
	switch m.Kind {
	case tabhttp.Head:
		header := map[string]any{}
		for name, values := range m.Header {
			header[name] = strings.Join(values, ", ")
		}
		data["status"], data["headers"] = m.Status, header
	case tabhttp.Chunk:
		body := js.Global().Get("Uint8Array").New(len(m.Body))
		js.CopyBytesToJS(body, m.Body)
		data["body"] = body
	default:
		data["reason"] = m.Reason
	}
	js.Global().Call("postMessage", data)
}
