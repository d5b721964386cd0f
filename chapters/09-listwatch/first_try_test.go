package listwatch

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"listwatch/internal/check/bubble"
	"listwatch/internal/server/pipenet"
)

// serving runs use with a client whose requests go to handler.
func serving(handler http.HandlerFunc, use func(*http.Client)) {
	bubble.Example(func() {
		listener := pipenet.Listen()
		server, client := &http.Server{Handler: handler}, listener.Client()
		ended := make(chan struct{})
		go func() {
			_ = server.Serve(listener)
			close(ended)
		}()
		use(client)
		client.CloseIdleConnections()
		server.Close()
		<-ended
	})
}

// quiet is a server on which pod a is created at once and pod b after an hour.
func quiet(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, frame(watch.Added, pod("a", "1")))
	w.(http.Flusher).Flush()
	select {
	case <-time.After(time.Hour):
		fmt.Fprint(w, frame(watch.Added, pod("b", "2")))
	case <-r.Context().Done():
	}
}

// brief is a server on which each watch ends in good order after five minutes. Nothing happens.
func brief(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	select {
	case <-time.After(5 * time.Minute):
	case <-r.Context().Done():
	}
}

// First try: a client with a timeout, which every HTTP client should have.
func Example_aClientWithATimeout() {
	serving(quiet, func(client *http.Client) {
		client.Timeout = 30 * time.Second
		began := time.Now()
		response, err := client.Get("http://server/api/v1/pods?watch=1")
		if err != nil {
			panic(err)
		}
		defer response.Body.Close()
		events := 0
		lines := bufio.NewScanner(response.Body)
		for lines.Scan() {
			events++
		}
		fmt.Println("after", time.Since(began), "and", events, "event:", lines.Err())
	})
	// Output: after 30s and 1 event: context deadline exceeded
}

// Second try: no timeout. The client decodes until the first error, and after an error it lists
// again.
func Example_decodeUntilTheFirstError() {
	serving(brief, func(client *http.Client) {
		began := time.Now()
		lists, failures := 0, map[string]int{}
		for time.Since(began) < time.Hour {
			lists++ // and then it watches
			response, err := client.Get("http://server/api/v1/pods?watch=1")
			for err == nil {
				var event struct{ Type string }
				err = json.NewDecoder(response.Body).Decode(&event)
			}
			failures[err.Error()]++
		}
		fmt.Println(lists, "lists in an hour without a change, because of", failures)
	})
	// Output: 12 lists in an hour without a change, because of map[EOF:12]
}
