package viz

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/server/pipenet"
	"listwatch/viz/frame"
)

// stand is a page on a network of pipes, in a bubble.
type stand struct {
	log    *probe.Log
	pods   *probe.Probe
	ui     *UI
	client *http.Client
	stop   func() // ends Run
}

func newStand(t *testing.T, log *probe.Log, change ...func(*frame.Page)) *stand {
	s := &stand{log: log, pods: probe.New(log).Resource("pods"), ui: show(log, change...)}
	s.stop = bubble.Go(t, "test.ui", s.ui.Run)
	listener := pipenet.Listen()
	server := &http.Server{Handler: s.ui}
	go server.Serve(listener)
	s.client = listener.Client()
	t.Cleanup(func() {
		s.stop()
		s.client.CloseIdleConnections()
		server.Close()
		listener.Close()
	})
	return s
}

// append writes n records.
func (s *stand) append(n int) {
	for range n {
		s.pods.At(probe.TxnCommitted, "/registry/pods/default/a", s.log.Last()+1)
	}
}

func (s *stand) get(t *testing.T, path, lastEventID string) *http.Response {
	t.Helper()
	request := require.Value(http.NewRequestWithContext(t.Context(), "GET", "http://localhost"+path, nil))(t)
	if lastEventID != "" {
		request.Header.Set("Last-Event-ID", lastEventID)
	}
	response := require.Value(s.client.Do(request))(t)
	t.Cleanup(func() { response.Body.Close() })
	return response
}

// message is one server-sent event.
type message struct{ id, event, data string }

// next reads one message; ok is false at the end of the stream.
func next(t *testing.T, in *bufio.Reader) (m message, ok bool) {
	t.Helper()
	for {
		line, err := in.ReadString('\n')
		if err == io.EOF {
			return m, false
		}
		require.NoError(t, err)
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "":
			return m, true
		case "id":
			m.id = value
		case "event":
			m.event = value
		case "data":
			m.data = value
		}
	}
}

// seqs returns the sequence numbers of a frame's records.
func (m message) seqs(t *testing.T) (seqs []uint64) {
	t.Helper()
	var records []json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(m.data), &records), "frame %q", m.data)
	for _, written := range records {
		r := require.Value(fold.ReadRecord(written))(t)
		seqs = append(seqs, r.Seq)
	}
	return seqs
}

func want(t *testing.T, got message, event, id string) {
	t.Helper()
	require.True(t, got.event == event && got.id == id,
		"message: got %s with id %s (%.80s), want %s with id %s", got.event, got.id, got.data, event, id)
}

func TestTheFeedBatchesWhatHappensAndBookmarksSilence(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newStand(t, probe.NewLog(clock.RealClock{}, 0))
		s.append(3)
		response := s.get(t, "/viz/events?since=1", "")
		assert.Equal(t, "text/event-stream", response.Header.Get("Content-Type"), "Content-Type")
		in := bufio.NewReader(response.Body)
		m, _ := next(t, in)
		want(t, m, "bookmark", "1") // connected
		m, _ = next(t, in)
		want(t, m, "frame", "3")
		assert.Equal(t, "[2 3]", fmt.Sprint(m.seqs(t)), "first frame: got records")
		start := time.Now()
		m, _ = next(t, in)
		want(t, m, "bookmark", "3")
		if silent := time.Since(start); silent < bookmarkPeriod || silent > bookmarkPeriod+2*framePeriod {
			t.Errorf("bookmark after %v of silence, want about %v", silent, bookmarkPeriod)
		}
		s.append(5)
		start = time.Now()
		m, _ = next(t, in)
		want(t, m, "frame", "8")
		late := time.Since(start)
		assert.True(t, late <= framePeriod, "frame after %v, want within %v", late, framePeriod)
	})
}

// TestWhereAFeedBegins: at the newest record, at the one it asks for, or after the Last-Event-ID of a page that comes
// back, whatever its URL says. What the log cannot continue is gone, and there the stream ends.
func TestWhereAFeedBegins(t *testing.T) {
	for name, test := range map[string]struct {
		query, lastEventID string
		event, id, data    string
		rest               string // the records of the frame after that; "": none comes
	}{
		"now":                   {"", "", "bookmark", "20", "", ""},
		"the newest":            {"?since=20", "", "bookmark", "20", "", ""},
		"after the last event":  {"?since=14&log=OWN", "17", "bookmark", "17", "", "[18 19 20]"},
		"overrun":               {"?since=3", "", "gone", "3", `{"oldest":13,"last":20}`, ""},
		"another process's log": {"?since=14&log=ANOTHER", "", "gone", "14", "", ""},
		"the future":            {"?since=21", "", "gone", "21", "", ""},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			s := newStand(t, probe.NewLog(clock.RealClock{}, 8))
			s.append(20)
			path := "/viz/events" + strings.Replace(test.query, "OWN", s.log.ID(), 1)
			in := bufio.NewReader(s.get(t, path, test.lastEventID).Body)
			m, _ := next(t, in)
			want(t, m, test.event, test.id)
			if test.data != "" {
				assert.Equal(t, test.data, m.data)
			}
			if test.rest != "" {
				m, _ = next(t, in)
				assert.Equal(t, test.rest, fmt.Sprint(m.seqs(t)), "records")
			}
			if test.event == "gone" {
				m, ok := next(t, in)
				assert.False(t, ok, "after gone: got %v, want the end", m)
			}
		})
	}
}

func TestWhatIsNoSequenceNumberIsRefused(t *testing.T) {
	log, _ := newLog()
	for _, since := range []string{"-1", "x", "99999999999999999999"} {
		assert.Equal(t, http.StatusBadRequest, ask(show(log), "GET", "/viz/events?since="+since, "").Code, since)
	}
}

func TestAPageThatDoesNotReadIsGoneWhenItReadsAgainAndSlowsNobody(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newStand(t, probe.NewLog(clock.RealClock{}, 64))
		s.append(1)
		slow := bufio.NewReader(s.get(t, "/viz/events?since=0", "").Body)
		m, _ := next(t, slow)
		want(t, m, "bookmark", "0")
		for range 100 { // no client reads: the feed's goroutine is stuck in its write, and no other one is
			s.append(10)
			time.Sleep(framePeriod)
		}
		synctest.Wait()
		seq, _, _ := s.ui.pictures.Snapshot(t.Context())
		assert.Equal(t, 1001, seq, "folded up to %d, want 1001", seq)
		last := message{}
		for m, ok := next(t, slow); ok; m, ok = next(t, slow) {
			last = m
		}
		assert.Equal(t, "gone", last.event, "last message to the slow page: got %v, want gone", last)
	})
}

// TestAClientThatBeginsFarBehindIsSentEveryRecord begins where the log does, and reads as fast as it can.
func TestAClientThatBeginsFarBehindIsSentEveryRecord(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newStand(t, probe.NewLog(clock.RealClock{}, 1<<15))
		s.append(5 * feedBatch)
		in, records := bufio.NewReader(s.get(t, "/viz/events?since=0", "").Body), 0
		for records < 5*feedBatch {
			m, ok := next(t, in)
			require.True(t, ok && m.event != "coalesced", "after %d records: %q", records, m.event)
			if m.event == "frame" {
				var list []json.RawMessage
				require.NoError(t, json.Unmarshal([]byte(m.data), &list))
				records += len(list)
			}
		}
	})
}

func TestAPageThatReadsSlowlyIsSentTheStateInsteadOfEverything(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newStand(t, probe.NewLog(clock.RealClock{}, 1<<15))
		s.append(1)
		in := bufio.NewReader(s.get(t, "/viz/events?since=0", "").Body)
		page := &told{state: fold.New()}
		take := func() (event string) {
			m, ok := next(t, in)
			require.True(t, ok, "the stream ended")
			page.hear(m)
			return m.event
		}
		take()
		take()
		for range 30 { // no client reads
			s.append(599)
			s.pods.Subject("w1").At(probe.WatcherForced, "", 0)
			time.Sleep(framePeriod)
		}
		for page.state.Seq < s.log.Last() {
			take()
		}
		assert.Equal(t, 1, page.sums, "coalesced messages")
		assert.True(t, page.records+page.summed == 18_001 && page.summed >= 10_000,
			"got %d records and %d summed, want 18001 together and most of them summed", page.records, page.summed)
		assert.Equal(t, 30, page.forced,
			"anomalies, one by one and with what was summed: none is missing, none comes twice")
		assert.Equal(t, 1+30*599, page.state.Resources["pods"].Points["TxnCommitted"], "commits")
		s.append(5) // and from there on it is sent every record again
		for take() != "frame" {
			s.append(1)
		}
		_, server, _ := s.ui.pictures.Snapshot(t.Context())
		want, _ := fold.Read(server)
		assert.NoDiff(t, want, page.state, "the state, and the server's")
		assert.Equal(t, "", strings.Join(page.problem, ", "))
	})
}

func TestAFeedEndsWithTheServer(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newStand(t, probe.NewLog(clock.RealClock{}, 0))
		in := bufio.NewReader(s.get(t, "/viz/events", "").Body)
		next(t, in)
		s.stop()
		m, ok := next(t, in)
		assert.False(t, ok, "after the end: got %v", m)
	})
}

func TestAFeedEndsWhenItsClientGoes(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newStand(t, probe.NewLog(clock.RealClock{}, 0))
		response := s.get(t, "/viz/events", "")
		next(t, bufio.NewReader(response.Body))
		response.Body.Close()
		time.Sleep(2 * bookmarkPeriod) // goleak sees what is left
	})
}
