package listwatch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

func openWatch(t *testing.T, s *server) watch.Interface {
	t.Helper()
	return require.Value(s.rest(nil).ListWatch("pods", "", nil).Watch(t.Context(), metav1.ListOptions{}))(t)
}

func TestWatchDeliversEventsAndStopEndsTheRequest(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := serve(t, streaming(frame(watch.Added, pod("a", "1")), frame(watch.Deleted, pod("a", "2"))))
		w := openWatch(t, s)
		for _, want := range []string{"ADDED a@1", "DELETED a@2"} {
			assert.Equal(t, want, describe(<-w.ResultChan()))
		}
		w.Stop()
		w.Stop()
		event, ok := <-w.ResultChan()
		assert.True(t, !ok, "after Stop: got %s, want a closed channel", describe(event))
		s.wantIdle(t)
	})
}

func TestStreamThatIsGivenUpIsClosedWithoutStop(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := serve(t, streaming("garbage"))
		assert.Equal(t, "ERROR 500 ClientWatchDecoding", collect(openWatch(t, s)))
		s.wantIdle(t)
	})
}

func TestEventsEndSilentlyForWhoeverCancels(t *testing.T) {
	for range 20 { // a select that had a choice would not choose the same way each time
		bubble.Test(t, func(t *testing.T) {
			s := serve(t, streaming())
			ctx, cancel := context.WithCancel(t.Context())
			w := require.Value(s.rest(nil).ListWatch("pods", "", nil).Watch(ctx, metav1.ListOptions{}))(t)
			time.AfterFunc(time.Second, cancel)
			assert.Equal(t, "", collect(w))
		})
	}
}

func TestStopFreesASenderThatIsBlocked(t *testing.T) {
	for _, text := range []string{frame(watch.Added, pod("a", "1")), "garbage"} {
		bubble.Test(t, func(t *testing.T) {
			sw := NewStreamWatcher(NewDecoder(body(text), decoder), reporter(), nil)
			sw.Start(t.Context())
			synctest.Wait() // blocked in send
			sw.Stop()
			_, ok := <-sw.ResultChan()
			assert.False(t, ok, "got an event after Stop, want a closed channel")
		})
	}
}

func reporter() *apierrors.ErrorReporter {
	return apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet, clientWatchDecoding)
}

func body(text string) io.ReadCloser { return io.NopCloser(strings.NewReader(text)) }

// The connection may break after any byte. Whatever had arrived whole is delivered, and nothing else: no ERROR.
func TestStreamCutAtEveryByteDeliversWholeFramesOnly(t *testing.T) {
	first := frame(watch.Added, awkwardPod())
	second := frame(watch.Modified, pod("b", "2"))
	text := first + "\n  " + second
	for cut := range len(text) + 1 {
		bubble.Test(t, func(t *testing.T) {
			sw := NewStreamWatcher(NewDecoder(body(text[:cut]), decoder), reporter(), nil)
			sw.Start(t.Context())
			want := ""
			if cut >= len(first)-1 { // the newline is not part of it
				want = "ADDED a@1"
			}
			if cut >= len(text)-1 {
				want = "ADDED a@1 MODIFIED b@2"
			}
			got, want := cmp.Or(collect(sw), "nothing"), cmp.Or(want, "nothing")
			assert.Equal(t, want, got, "cut at %d of %d", cut, len(text))
		})
	}
}

func awkwardPod() *corev1.Pod {
	p := pod("a", "1")
	p.Annotations = map[string]string{"x": `}{"\" \\" é {{`, `\`: "\\\\\""}
	return p
}

// pieces gives size bytes per Read, and its last bytes together with io.EOF.
type pieces struct {
	text string
	size int
}

func (p *pieces) Read(buf []byte) (int, error) {
	n := copy(buf[:min(len(buf), p.size)], p.text)
	p.text = p.text[n:]
	if p.text == "" {
		return n, io.EOF
	}
	return n, nil
}

func (p *pieces) Close() error { return nil }

// A server that speaks nonsense is worth one message, a broken connection is not.
func TestHowAStreamEnds(t *testing.T) {
	good := frame(watch.Added, pod("a", "1"))
	rows := []struct {
		name string
		body io.ReadCloser
		want string
	}{
		{"in an orderly way", body(good), "ADDED a@1"},
		{"within a frame", body(good + good[:9]), "ADDED a@1"},
		{"with a reset connection", broken(good, errors.New("read tcp: connection reset by peer")), "ADDED a@1"},
		{"with a timeout", broken(good, timeout{}), "ADDED a@1"},
		{"with an unknown error", broken(good, errors.New("flux")), "ADDED a@1 ERROR 500 ClientWatchDecoding"},
		{"with garbage between frames", body(good + "garbage" + good), "ADDED a@1 ERROR 500 ClientWatchDecoding"},
		{"with garbage within a frame", body(good + `{"type":x}`), "ADDED a@1 ERROR 500 ClientWatchDecoding"},
		{"with another JSON value", body(good + `[1]`), "ADDED a@1 ERROR 500 ClientWatchDecoding"},
		{"with an unknown type", body(good + strings.Replace(good, "ADDED", "FROBNICATED", 1) + good),
			"ADDED a@1 ERROR 500 ClientWatchDecoding"},
		{"with a type that reads like a broken connection", body(strings.Replace(good, "ADDED",
			"connection reset by peer", 1)), "ERROR 500 ClientWatchDecoding"},
		{"with an unknown kind", body(strings.Replace(good, `"Pod"`, `"Frob"`, 1)), "ERROR 500 ClientWatchDecoding"},
		{"without an object", body(`{"type":"ADDED"}`), "ERROR 500 ClientWatchDecoding"},
		{"with an error of the server", body(good + frame(watch.Error, status(expired()))), "ADDED a@1 ERROR 410"},
	}
	for _, row := range rows {
		bubble.Run(t, row.name, func(t *testing.T) {
			sw := NewStreamWatcher(NewDecoder(row.body, decoder), reporter(), nil)
			sw.Start(t.Context())
			assert.Equal(t, row.want, collect(sw))
		})
	}
}

func expired() error { return apierrors.NewResourceExpired("too old resource version: 1 (9)") }

func status(err error) *metav1.Status {
	var e *apierrors.StatusError
	errors.As(err, &e)
	return &e.ErrStatus
}

// huge returns a frame of n bytes: {"type":"ADDED","object":{...,"x":"yyyy…"}}
func huge(n int) string {
	p := pod("a", "1")
	p.Annotations = map[string]string{"x": ""}
	bare := strings.TrimSpace(frame(watch.Added, p))
	return strings.Replace(bare, `"x":""`, `"x":"`+strings.Repeat("y", n-len(bare))+`"`, 1)
}

func broken(text string, err error) io.ReadCloser {
	return io.NopCloser(io.MultiReader(strings.NewReader(text), &failingReader{err}))
}

type failingReader struct{ err error }

func (r *failingReader) Read([]byte) (int, error) { return 0, r.err }

type timeout struct{}

func (timeout) Error() string   { return "i/o timeout" }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }

func TestAFrameHasSixteenMiBAtMostAndNoMoreIsRead(t *testing.T) {
	for size, want := range map[int]error{maxFrameSize: nil, maxFrameSize + 1: ErrObjectTooLarge,
		20 << 20: ErrObjectTooLarge} {
		first := strings.TrimSpace(frame(watch.Added, pod("a", "1")))
		d := NewDecoder(body(first+huge(size)), decoder)
		_, _, err := d.Decode()
		require.NoError(t, err)
		_, _, err = d.Decode()
		require.True(t, errors.Is(err, want), "a frame of %d bytes: %v", size, err)
		assert.Equal(t, int64(len(first)+maxFrameSize), d.stream.read, "bytes read")
	}
}

func TestProbesOfAStream(t *testing.T) {
	rows := []struct {
		name string
		text string
		want string
	}{
		{"ends", frame(watch.Added, pod("a", "7")) + frame(watch.Error, status(expired())), "The client decodes " +
			"ADDED default/a at 7.\nThe client decodes ERROR.\n" +
			"The client sees the end of the stream: the server closed it."},
		{"breaks", frame(watch.Added, pod("a", "7")) + "{", "The client decodes ADDED default/a at 7.\nThe client " +
			"sees the end of the stream: unexpected EOF."},
	}
	for _, row := range rows {
		bubble.Run(t, row.name, func(t *testing.T) {
			log := probe.NewLog(clock.RealClock{}, 0)
			probetest.Story(t, log)
			sw := NewStreamWatcher(NewDecoder(body(row.text), decoder), reporter(), probe.New(log))
			sw.Start(t.Context())
			collect(sw)
			synctest.Wait()
			var told []string
			for _, r := range probetest.Records(log) {
				if r.Point != probe.StreamBlocked { // either of the two may be earlier
					told = append(told, r.Sentence())
				}
			}
			assert.Equal(t, row.want, strings.Join(told, "\n"), "told")
		})
	}
}

// Backpressure: a client that does not receive stops the server from writing, and loses nothing.
func TestClientThatDoesNotReceiveStopsTheServer(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const n = 1000
		var written atomic.Int64
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for i := range n {
				fmt.Fprint(w, frame(watch.Added, pod("a", fmt.Sprint(i))))
				http.NewResponseController(w).Flush()
				written.Add(1)
			}
		})
		w := openWatch(t, s)
		time.Sleep(time.Minute)
		got := written.Load()
		assert.True(t, got <= n/2, "the server wrote %d of %d frames to a client that takes none", got, n)
		assert.Equal(t, n, strings.Count(collect(w), "ADDED"), "events")
	})
}

func TestFrames(t *testing.T) {
	const noFrame = "decode frame: invalid character "
	rows := []struct {
		text string
		want string
	}{
		{"", "EOF"},
		{" \n\t\r ", "EOF"},
		{"{}{}", "{}\n{}\nEOF"},
		{`{"a":"\"}"} {}`, `{"a":"\"}"}` + "\n{}\nEOF"},
		{`{"a":"\\"}{}`, `{"a":"\\"}` + "\n{}\nEOF"},
		{`{"a":{"b":"{"}}`, `{"a":{"b":"{"}}` + "\nEOF"},
		{`{"a":{}`, "unexpected EOF"},
		{`{"}`, "unexpected EOF"},
		{`{}]`, "{}\n" + noFrame + "']' looking for beginning of value"},
		{"\xef\xbb\xbf{}", noFrame + "'ï' looking for beginning of value"},
	}
	for _, row := range rows {
		for size := 1; size <= 4; size++ {
			assert.Equal(t, row.want, framesOf(row.text, size), "%q in pieces of %d", row.text, size)
		}
	}
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte(`{"type":"ADDED","object":{}} {"a":"}\""}`), uint8(3))
	f.Add([]byte(`{"a":[}]}x`), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, size uint8) {
		whole := framesOf(string(data), len(data)+1)
		assert.Equal(t, framesOf(string(data), int(size)%16+1), whole, "read at once, and in pieces")
	})
}

func framesOf(text string, size int) string {
	d := NewDecoder(&pieces{text: text, size: size}, decoder)
	var got []string
	for {
		var frame json.RawMessage
		if err := d.readFrame(&frame); err != nil {
			return strings.Join(append(got, err.Error()), "\n")
		}
		got = append(got, string(frame))
	}
}
