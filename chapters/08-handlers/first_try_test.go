package handlers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/server/pipenet"
)

// counted is a network whose server counts its writes.
type counted struct {
	*pipenet.Listener
	writes atomic.Int64
}

func (l *counted) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return countedConn{conn, &l.writes}, err
}

type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countedConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// get sends a request to a handler, calls read for each line, and returns how often the server has written.
func get(handler http.HandlerFunc, read func(line string)) (writes int64) {
	network := &counted{Listener: pipenet.Listen()}
	server, client := &http.Server{Handler: handler}, network.Client()
	ended := make(chan struct{})
	go func() {
		_ = server.Serve(network)
		close(ended)
	}()
	defer func() { <-ended }()
	defer server.Close()
	defer client.CloseIdleConnections()
	response, err := client.Get("http://server/")
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		read(lines.Text())
	}
	return network.writes.Load()
}

// First try: the handler encodes each event into the response.
func Example_encodeWithoutFlushing() {
	bubble.Example(func() {
		events := make(chan string)
		go func() {
			for _, event := range []string{"a is created", "a is bound", "a runs"} {
				time.Sleep(time.Minute)
				events <- event
			}
			close(events)
		}()
		handler := func(w http.ResponseWriter, _ *http.Request) {
			encoder := json.NewEncoder(w)
			for event := range events {
				_ = encoder.Encode(event)
			}
		}
		began := time.Now()
		get(handler, func(line string) { fmt.Println(time.Since(began), line) })
	})
	// Output:
	// 3m0s "a is created"
	// 3m0s "a is bound"
	// 3m0s "a runs"
}

// Second try: the handler flushes after each event.
func Example_flushEachEvent() {
	bubble.Example(func() {
		events := make(chan int, 1000) // a backlog
		for n := range cap(events) {
			events <- n
		}
		close(events)
		handler := func(w http.ResponseWriter, _ *http.Request) {
			encoder := json.NewEncoder(w)
			for event := range events {
				_ = encoder.Encode(event)
				w.(http.Flusher).Flush()
			}
		}
		received := 0
		writes := get(handler, func(string) { received++ })
		fmt.Println(received, "events in", writes, "writes")
	})
	// Output: 1000 events in 1001 writes
}

// TestTheWatchServerInTheTriesPlace serves the quiet watch and the backlog of the tries.
func TestTheWatchServerInTheTriesPlace(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		quiet := watch.NewFake()
		go func() {
			for range 3 {
				time.Sleep(time.Minute)
				quiet.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
			}
			quiet.Stop()
		}()
		serving := func(watching *watch.FakeWatcher) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				serveWatch(t, watchScope(t), "application/json", watching, w)
			}
		}
		var arrived []time.Duration
		began := time.Now()
		get(serving(quiet), func(string) { arrived = append(arrived, time.Since(began)) })
		want := []time.Duration{time.Minute, 2 * time.Minute, 3 * time.Minute}
		assert.EqualSlices(t, want, arrived, "when the events of a quiet watch arrive")

		backlog := watch.NewFakeWithChanSize(1000, false)
		for range 1000 {
			backlog.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
		}
		backlog.Stop()
		received := 0
		writes := get(serving(backlog), func(string) { received++ })
		assert.True(t, received == 1000 && writes <= 100,
			"%d events of a backlog in %d writes, want 1000 in far fewer", received, writes)
	})
}
