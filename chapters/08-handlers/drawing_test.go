package handlers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"listwatch/internal/check/bubble"
	"listwatch/internal/check/drawing"
	"listwatch/internal/check/require"
)

// The drawing of a stream: one answer of a minute, frame by frame, with the second at which the client has each.
func TestTheDrawingOfAStreamIsOfThisServer(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		a := newCachedAPI(t)
		client := a.serve()
		began := time.Now()
		response, err := client.Get("http://api" + podsPath + "?watch=1&allowWatchBookmarks=true&timeoutSeconds=60")
		require.NoError(t, err)
		defer response.Body.Close()
		d := drawing.New("stream.svg", 216)
		at := func(second float64) int { return 40 + int(second*9.4) }
		d.Text(16, 24, "", "GET …/pods?watch=1&timeoutSeconds=60")
		d.Path("way", "M%d 104H%d", at(0), at(60))
		time.AfterFunc(15*time.Second, func() { a.create(podA) })
		time.AfterFunc(35*time.Second, func() { a.do("DELETE", podsPath+"/a", "") })
		d.Text(at(0)-10, 70, "", "%d, headers", response.StatusCode)
		lines := bufio.NewScanner(response.Body)
		last := -1.0
		for n := 0; lines.Scan(); n++ {
			var f frame
			require.NoError(t, json.Unmarshal(lines.Bytes(), &f))
			second := time.Since(began).Seconds()
			if f.Type == "BOOKMARK" && second > 50 {
				second = 58 // about: the cacher's timer is random
			}
			d.In("queue", func() { d.Box(at(second)-4, 92, 8, 24, "fill") })
			y := 138
			if second-last < 4 {
				y = 160
			}
			class := "mid"
			if second > 50 {
				class = "end"
			} else if second < 5 {
				class = ""
			}
			d.Text(at(second), y, class, "%s", f.Type)
			last = second
		}
		second := time.Since(began).Seconds()
		d.Path("cross", "M%d 94v20", at(second))
		d.Text(at(second), 70, "end", "a clean end")
		for tick := 0; tick <= 60; tick += 15 {
			d.Text(at(float64(tick)), 186, "mid soft", "%s", fmt.Sprint(tick, " s"))
		}
		d.Text(16, 208, "soft", "From the headers on there is no status any more: an error is a frame, or an end.")
		d.Check(t)
	})
}
