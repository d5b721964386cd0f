package viz

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
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

// stand serves the page of a log on an in-memory network, in a bubble.
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
	go func() { _ = server.Serve(listener) }()
	s.client = listener.Client()
	t.Cleanup(func() {
		s.stop()
		s.client.CloseIdleConnections()
		server.Close()
		listener.Close()
	})
	return s
}

// append writes n records, each a commit of default/a.
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

// TestWhereAFeedBegins checks that a feed begins at the newest record, after the requested one, or after the
// Last-Event-ID of a returning page, which overrides the URL. A feed that the log cannot continue ends with gone.
func TestWhereAFeedBegins(t *testing.T) {
	for name, test := range map[string]struct {
		query, lastEventID string
		event, id, data    string
		rest               string // the records of the next frame; "": none
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

func TestAPageThatDoesNotReadIsGoneWhenItReadsAgainAndSlowsNobody(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newStand(t, probe.NewLog(clock.RealClock{}, 64))
		s.append(1)
		slow := bufio.NewReader(s.get(t, "/viz/events?since=0", "").Body)
		m, _ := next(t, slow)
		want(t, m, "bookmark", "0")
		for range 100 { // the client does not read: only the feed's goroutine blocks, in its write
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

// TestAClientThatBeginsFarBehindIsSentEveryRecord reads from the first record on, as fast as it can; it gets no sum.
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
		for range 30 { // the client does not read
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
		s.append(5) // the page gets every record again
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
		time.Sleep(2 * bookmarkPeriod) // goleak finds leaked goroutines
	})
}

// told counts the records that a page got from its feed, singly and in sums.
type told struct {
	state                    *fold.State
	frames, sums             int
	records, summed          uint64
	forced, followed, others int           // singly: evictions, records of default/f, others that came with a sum
	mine                     []probe.Point // records of default/mine that came with a sum
	sumsAt                   []time.Time   // the times of the sums
	problem                  []string      // inconsistencies
}

// listen counts a feed's messages until the feed ends.
func (p *told) listen(t *testing.T, in *bufio.Reader) {
	for m, ok := next(t, in); ok; m, ok = next(t, in) {
		p.hear(m)
	}
}

func (p *told) hear(m message) {
	switch m.event {
	case "frame":
		p.frames++
		p.records += p.take(m.data, true)
	case "coalesced":
		p.sums++
		p.sumsAt = append(p.sumsAt, time.Now())
		p.sum(m)
	}
}

func (p *told) sum(m message) {
	var sum struct {
		From, Seq, Records uint64
		Kept, State        json.RawMessage
	}
	if err := json.Unmarshal([]byte(m.data), &sum); err != nil {
		p.problem = append(p.problem, err.Error())
	}
	if sum.From != p.state.Seq || fmt.Sprint(sum.Seq) != m.id || sum.Records != sum.Seq-sum.From {
		p.problem = append(p.problem, fmt.Sprintf("a sum of %d from %d to %d under id %s, and the page is at %d",
			sum.Records, sum.From, sum.Seq, m.id, p.state.Seq))
	}
	p.take(string(sum.Kept), false)
	p.summed += sum.Records
	p.state, _ = fold.Read(sum.State)
}

// take counts records, and folds them if apply is true; a sum brings the state itself.
func (p *told) take(data string, apply bool) uint64 {
	var list []json.RawMessage
	if err := json.Unmarshal([]byte(data), &list); err != nil {
		p.problem = append(p.problem, err.Error())
	}
	last := uint64(0)
	for _, written := range list {
		r, err := fold.ReadRecord(written)
		if err != nil || r.Seq <= last {
			p.problem = append(p.problem, fmt.Sprintf("record %d after %d: %v", r.Seq, last, err))
		}
		last = r.Seq
		switch {
		case r.Point == probe.WatcherForced:
			p.forced++
		case r.Key == "/registry/pods/default/f":
			p.followed++
		case !apply && r.Key == "/registry/pods/default/mine":
			p.mine = append(p.mine, r.Point)
		case !apply:
			p.others++
		}
		if apply {
			p.state.Apply([]probe.Record{r})
		}
	}
	return uint64(len(list))
}

// tell opens a feed and counts its records. heard is closed when the feed has ended.
func (s *stand) tell(t *testing.T, query string) (page *told, heard <-chan struct{}) {
	page, ended := &told{state: fold.New()}, make(chan struct{})
	in := bufio.NewReader(s.get(t, "/viz/events?since=0"+query, "").Body)
	go func() { page.listen(t, in); close(ended) }()
	return page, ended
}

// TestTheViewersOwnChangeComesBesideASum writes thirty thousand records a second. One change among them is kubectl's,
// requested before the sums began: each of its records must come beside a sum.
func TestTheViewersOwnChangeComesBesideASum(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newStand(t, probe.NewLog(clock.RealClock{}, 1<<17))
		page, heard := s.tell(t, "")
		path := []string{"POST", "/api/v1/namespaces/default/pods", "", "kubectl", ""}
		request := int(s.pods.Resource("").Texts(probe.RequestReceived, path, "", 0))
		key, rv := "/registry/pods/default/mine", uint64(1<<20)
		want := []probe.Point{probe.Etcd3IncomingSent, probe.TxnCommitted, probe.RingAppend, probe.HandlerReturned}
		for i := range 90 {
			s.append(998)
			if i == 60 {
				for _, point := range want {
					s.pods.At(point, key, rv, request)
					s.append(flowTail)
				}
			}
			time.Sleep(framePeriod)
		}
		s.stop()
		<-heard
		assert.Equal(t, fmt.Sprint(want), fmt.Sprint(page.mine), "of the change came beside the sums")
	})
}

// TestWhatNobodyCanLookAtComesInSums writes thirty thousand records a second for three seconds, and then very few. Most
// must come in sums, but each eviction and each record of the followed object singly; in the end all come singly.
func TestWhatNobodyCanLookAtComesInSums(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newStand(t, probe.NewLog(clock.RealClock{}, 1<<17))
		page, heard := s.tell(t, "&resource=pods&key=default/f")
		const rounds = 90
		for range rounds {
			s.append(998)
			s.pods.Subject("w1").At(probe.WatcherForced, "", 0)
			s.pods.At(probe.TxnCommitted, "/registry/pods/default/f", s.log.Last()+1)
			time.Sleep(framePeriod)
		}
		lately := time.Now().Add(-time.Second)
		time.Sleep(2 * flowPeriod) // the last sum comes within that time
		synctest.Wait()
		frames, sums := page.frames, page.sums
		assert.True(t, page.records+page.summed == rounds*1000 && page.summed >= 60*1000,
			"%d records came one by one and %d in sums, want %d together, most of them in sums", page.records,
			page.summed, rounds*1000)
		assert.True(t, page.forced == rounds && page.followed == rounds,
			"%d evictions and %d records of what is followed came one by one, want %d of each", page.forced,
			page.followed, rounds)
		page.sumsAt = slices.DeleteFunc(page.sumsAt, lately.After)
		if n := len(page.sumsAt); n < 2 || n > 4 { // the last sum came after the last record
			t.Errorf("%d sums since a second before the last record, want about three", n)
		}
		if page.others == 0 || page.others > sums*flowTail { // the newest records come with each sum
			t.Errorf("%d other records came with %d sums, want %d with each at most", page.others, sums, flowTail)
		}
		time.Sleep(4 * flowMemory)
		s.append(5)
		time.Sleep(bookmarkPeriod)
		s.append(5)
		time.Sleep(bookmarkPeriod)
		synctest.Wait()
		assert.True(t, page.frames == frames+2 && page.sums <= sums+1,
			"in silence: %d frames and %d sums more, want two frames", page.frames-frames, page.sums-sums)
		_, written, _ := s.ui.pictures.Snapshot(t.Context())
		server, _ := fold.Read(written)
		assert.NoDiff(t, server, page.state, "the page's picture is not the server's")
		assert.EqualSlices(t, nil, page.problem, "problems")
		s.stop()
		<-heard
	})
}
