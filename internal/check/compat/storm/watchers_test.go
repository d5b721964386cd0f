package storm

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"time"
)

// watcher is a raw watch that resumes: it lists, watches from the version of the list, watches on from the newest version
// it knows when the stream breaks, and lists again only when it is told that this version is too old.
type watcher struct {
	// Set before run, never changed.
	view     *view
	lister   *api
	selector string        // of labels
	slow     time.Duration // for each event
	cuts     bool          // it leaves in the middle of a stream now and then
	random   *rand.Rand

	// Owned by run; read when it has returned.
	nWatches, nExpired, nLists int
}

// run watches until ctx is done.
func (w *watcher) run(ctx context.Context) {
	defer w.lister.close()
	listed := false
	for ctx.Err() == nil {
		if !listed {
			listed = w.list()
		}
		if listed {
			listed = w.watch(ctx)
		}
		pause(ctx, time.Duration(10+w.random.IntN(90))*time.Millisecond) // after the end of a stream, or a refusal
	}
}

// list reports whether there is a version to watch from.
func (w *watcher) list() bool {
	r := w.lister.do("GET", configMapsOf(namespace)+"?labelSelector="+url.QueryEscape(w.selector), nil)
	var list configMapList
	if r.code != http.StatusOK || r.read(&list) != nil {
		return false
	}
	w.nLists++
	w.view.reset(parse(list.Metadata.ResourceVersion), objects(list.Items))
	return true
}

// watchEvent is one line of a stream.
type watchEvent struct {
	Type   string
	Object struct {
		configMap
		Code    int
		Message string
	}
}

// watch reads one stream to its end. It reports whether the version that is known may be watched from.
func (w *watcher) watch(ctx context.Context) bool {
	w.nWatches++
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	query := url.Values{
		"watch": {"1"}, "allowWatchBookmarks": {"1"}, "resourceVersion": {version(w.view.newest())},
		"labelSelector": {w.selector}, "timeoutSeconds": {fmt.Sprint(2 + w.random.IntN(20))},
	}
	request, err := http.NewRequestWithContext(ctx, "GET", w.lister.base+configMapsOf(namespace)+"?"+query.Encode(), nil)
	if err != nil {
		return true
	}
	// Without a time limit, and on a connection of its own: the server ends it, or a fault does, or the end of the storm.
	response, err := (&http.Client{Transport: w.lister.client.Transport}).Do(request)
	if err != nil {
		return true
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusGone {
		w.nExpired++
		return false
	}
	if response.StatusCode != http.StatusOK {
		return true
	}
	return w.read(ctx, json.NewDecoder(response.Body))
}

func (w *watcher) read(ctx context.Context, stream *json.Decoder) bool {
	left := -1 // events until it leaves
	if w.cuts {
		left = w.random.IntN(300)
	}
	for ; left != 0; left-- {
		var event watchEvent
		if stream.Decode(&event) != nil {
			return true
		}
		o := event.Object
		switch {
		case event.Type == "ERROR" && o.Code == http.StatusGone:
			w.nExpired++
			return false
		case event.Type == "ERROR":
			return true
		case event.Type == "BOOKMARK":
			w.view.bookmark(o.Metadata.rv())
		default:
			w.view.event(event.Type, o.object())
		}
		if w.slow > 0 && !pause(ctx, w.slow) {
			return true
		}
	}
	return true
}

// sleeper opens a watch and reads nothing of it, again and again: the program has to end it, or to bear it.
type sleeper struct {
	address   string
	webSocket bool
	random    *rand.Rand

	nWatches int // owned by run; read when it has returned
}

// run sleeps until ctx is done.
func (s *sleeper) run(ctx context.Context) {
	for ctx.Err() == nil {
		s.sleep(ctx, time.Duration(1+s.random.IntN(10))*time.Second)
		pause(ctx, 100*time.Millisecond)
	}
}

func (s *sleeper) sleep(ctx context.Context, d time.Duration) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.address)
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10) // what it does not read shall be felt
	upgrade := ""
	if s.webSocket {
		upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: c3Rvcm0gc3Rvcm0gc3Rvcm0=\r\n"
	}
	w := bufio.NewWriter(conn)
	fmt.Fprintf(w, "GET %s?watch=1 HTTP/1.1\r\nHost: %s\r\n%s\r\n", configMapsOf(namespace), s.address, upgrade)
	if w.Flush() == nil {
		s.nWatches++
		pause(ctx, d)
	}
}
