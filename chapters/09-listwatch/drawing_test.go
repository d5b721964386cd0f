package listwatch

import (
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"listwatch/internal/check/bubble"
	"listwatch/internal/check/drawing"
	"listwatch/internal/check/require"
)

// The drawing of the queue that is missing: a reader takes two events and no more, over a connection without a buffer.
func TestTheDrawingOfTheMissingQueueIsOfThisClient(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var written atomic.Int64
		w := openWatch(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for n := 1; r.Context().Err() == nil; n++ {
				if _, err := fmt.Fprint(w, frame(watch.Added, pod("a", strconv.Itoa(n)))); err != nil {
					return
				}
				w.(http.Flusher).Flush()
				written.Add(1)
			}
		}), nil)
		const read = 2
		for range read {
			<-w.ResultChan()
		}
		synctest.Wait()
		before := written.Load()
		time.Sleep(time.Hour)
		after := written.Load()
		w.Stop()
		require.Equal(t, before, after, "frames that the server has written in an hour without a reader")

		d := drawing.New("no-queue.svg", 236)
		box := func(x, width int, kind, name, says string) {
			d.In(kind, func() { d.Box(x, 60, width, 66, "wall") })
			d.Text(x+width/2, 44, "mid soft", "%s", name)
			d.Text(x+width/2, 98, "mid", "%s", says)
		}
		box(16, 164, "acts", "the server’s handler", "waits in Write")
		box(226, 120, "queue", "the connection", "full")
		box(392, 110, "acts", "StreamWatcher", "waits")
		box(548, 76, "acts", "reflector", fmt.Sprintf("has %d", read))
		d.Arrow("way", "M180 93H222")
		d.Arrow("way", "M346 93H388")
		d.Arrow("way later", "M502 93H544")
		d.Text(523, 146, "mid soft", "result: 0 places")
		d.Text(16, 186, "", "The reflector took %d events. The server wrote %d, and none more in an hour:", read,
			before)
		d.Text(16, 210, "", "what has not been taken is in the connection and in the StreamWatcher’s hands.")
		d.Check(t)
	})
}
