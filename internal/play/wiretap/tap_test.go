package wiretap

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/routine"
	"listwatch/internal/server/pipenet"
)

func TestTheTapSeesTheChunksOfAWatch(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const events = 20
		mux := http.NewServeMux()
		mux.HandleFunc("/pods", func(w http.ResponseWriter, r *http.Request) {
			for i := range events {
				if i == events-1 {
					_, _ = fmt.Fprintf(w, `{"long":%q}`+"\n", strings.Repeat("x", 2*maxData))
				} else {
					_, _ = fmt.Fprintf(w, `{"i":%d}`+"\n", i)
				}
				w.(http.Flusher).Flush()
			}
			<-r.Context().Done()
		})
		mux.HandleFunc("/quick", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("no watch")) })
		listener := pipenet.Listen()
		server := &http.Server{Handler: mux}
		var group routine.Group
		group.Go(t.Context(), "test.server", func(context.Context) { _ = server.Serve(listener) })
		tap := New()
		client := tap.Tap(listener.Client())

		quick, err := client.Get("http://api/quick")
		require.NoError(t, err)
		quick.Body.Close()
		response, err := client.Get("http://api/pods?watch=true")
		require.NoError(t, err)
		group.Go(t.Context(), "test.reader", func(context.Context) {
			_, _ = response.Body.Read(make([]byte, 1<<16))
			discardAll(response)
		})
		synctest.Wait()

		streams := tap.Snapshot()
		require.Equal(t, len(streams), 1, "got %d streams, want the watch alone", len(streams))
		s := streams[0]
		if s.OpenedBy() != "Go-http-client/1.1 /pods?watch=true" || !strings.HasPrefix(s.Request,
			"GET /pods?watch=true HTTP/1.1\r\nHost: api\r\n") || !strings.HasSuffix(s.Request, "\r\n\r\n") ||
			!strings.HasPrefix(s.Header, "HTTP/1.1 200 OK\r\n") || s.Count != events || len(s.Chunks) != maxChunks {
			t.Errorf("got %q %q, %d chunks, %d kept", s.Request, s.Header, s.Count, len(s.Chunks))
		}
		if got, want := s.Chunks[0], (Chunk{SizeLine: "8\r\n", Data: "{\"i\":4}\n", Size: 8,
			End: "\r\n"}); got != want {
			t.Errorf("first chunk: got %+v, want %+v", got, want)
		}
		if last := s.Chunks[len(s.Chunks)-1]; len(last.Data) != maxData || last.Size <= maxData || last.End != "\r\n" {
			t.Errorf("last chunk: got %d of %d bytes, end %q", len(last.Data), last.Size, last.End)
		}
		response.Body.Close()
		synctest.Wait()
		if streams := tap.Snapshot(); len(streams) != 0 {
			t.Errorf("after the end: got %+v", streams)
		}
		client.CloseIdleConnections()
		_ = server.Close()
		group.Wait()
	})
}

// discardAll reads an answer until it is closed.
func discardAll(response *http.Response) {
	buf := make([]byte, 1<<10)
	for {
		if _, err := response.Body.Read(buf); err != nil {
			return
		}
	}
}

func TestChunksAreUnderstoodHoweverTheyAreCut(t *testing.T) {
	const wire = "HTTP/1.1 200 OK\r\nTransfer-Encoding: " +
		"chunked\r\n\r\n5\r\nab\r\nc\r\n10;x=y\r\n0123456789abcdef\r\n0\r\n\r\n"
	stream := &parser{}
	reader := iotest.OneByteReader(strings.NewReader(wire))
	for buf := make([]byte, 10); ; {
		n, err := reader.Read(buf)
		stream.read(buf[:n])
		if err != nil {
			break
		}
	}
	whole := &parser{}
	whole.read([]byte(wire))
	got, want := fmt.Sprintf("%+v", stream.Stream), fmt.Sprintf("%+v", whole.Stream)
	assert.Equal(t, got, want)
	if whole.Count != 3 || whole.Chunks[0].Data != "ab\r\nc" || whole.Chunks[1].Size != 16 ||
		whole.Chunks[2].SizeLine != "0\r\n" || whole.Chunks[2].End != "\r\n" {
		t.Errorf("got %+v", whole.Chunks)
	}
}

func TestWhatIsNoChunkedAnswerIsNotUnderstood(t *testing.T) {
	for _, wire := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n5\r\nab", "HTTP/1.1 200 OK\r\nTransfer-Encoding: " +
			"chunked\r\n\r\nxyz\r\n",
		strings.Repeat("x", 2*maxHeader), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
	} {
		stream := &parser{}
		stream.read([]byte(wire))
		assert.True(t, stream.state == done && len(stream.Chunks) == 0 && stream.line == nil,
			"%.40q: got %+v", wire, stream)
	}
}
