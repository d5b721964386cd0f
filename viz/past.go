package viz

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/recording"
)

// maxRecords is the most records one answer carries.
const maxRecords = 10_000

// keyframe answers GET /viz/keyframe?at=SEQ with a picture from which, with the records after it, the one at SEQ can
// be folded. It is 410 Gone if the log no longer leads there.
func (u *UI) keyframe(r *http.Request) (any, error) {
	at, err := number(r.URL.Query(), "at", u.config.Log.Last())
	if err != nil {
		return nil, err
	}
	if err := u.knows(r); err != nil {
		return nil, err
	}
	frame, err := u.folder.keyframe(r.Context(), at)
	return struct {
		Log   string          `json:"log"`
		Seq   uint64          `json:"seq"`
		State json.RawMessage `json:"state"`
	}{u.id, frame.Seq, frame.State}, err
}

// serveRecording answers GET /viz/recording with what the log still holds, from its oldest picture on, as a recording.
func (u *UI) serveRecording(w http.ResponseWriter, r *http.Request) {
	log := u.config.Log
	line, err := u.folder.bounds(r.Context())
	var frame fold.Keyframe
	if err == nil {
		frame, err = u.folder.keyframe(r.Context(), line.Oldest)
	}
	records, ok := log.Since(nil, frame.Seq, int(line.Last-frame.Seq))
	if err == nil && !ok {
		err = refuse(http.StatusGone, "record %d has left the log: ask again", frame.Seq+1)
	}
	if err != nil {
		handlers.WriteError(w, r, err)
		return
	}
	header := recording.NewHeader(time.Now(), u.config.Switches)
	header.Keyframe = frame.State
	w.Header().Set("Content-Type", "application/gzip")
	_ = recording.WriteAll(w, header, records) // the reader has gone if this fails
}

// Keyframe returns a picture at or before the record seq. The error says that the log no longer leads there, or is
// ctx's.
func (u *UI) Keyframe(ctx context.Context, seq uint64) (fold.Keyframe, error) {
	return u.folder.keyframe(ctx, seq)
}

// records answers GET /viz/records?from=&to=&limit=&resource=&key=&rv=&point=&subject= with the records in [from, to)
// that match, as many as fit, and where to go on. It is 410 Gone if the log no longer holds from.
func (u *UI) records(r *http.Request) (any, error) {
	log, query := u.config.Log, r.URL.Query()
	from, wrongFrom := number(query, "from", log.Oldest())
	to, wrongTo := number(query, "to", log.Last()+1)
	limit, wrongLimit := number(query, "limit", maxRecords)
	want, wrong := readQuery(query)
	if err := cmp.Or(wrongFrom, wrongTo, wrongLimit, wrong); err != nil {
		return nil, err
	}
	if from == 0 || to < from {
		return nil, refuse(http.StatusBadRequest, "want 1 <= from <= to, got [%d, %d)", from, to)
	}
	if err := u.knows(r); err != nil {
		return nil, err
	}
	body, next, found := []byte{'['}, from, uint64(0)
	_, whole := log.Since(nil, from-1, 0)
	whole = whole || from > log.Last()
	for r := range log.Between(from-1, to-1) {
		if whole = r.Seq == next; !whole || found == min(limit, maxRecords) {
			break
		}
		next++
		if want.Matches(r) {
			found++
			body = appendNext(body, r)
		}
	}
	if !whole {
		return nil, refuse(http.StatusGone, "record %d has left the log: the oldest is %d", next, log.Oldest())
	}
	return struct {
		Log     string          `json:"log"`
		Oldest  uint64          `json:"oldest"`
		Next    uint64          `json:"next"` // the first record that was not looked at
		Records json.RawMessage `json:"records"`
	}{u.id, log.Oldest(), next, append(body, ']')}, nil
}

// readQuery reads which records are meant; several points have commas between them. A parameter that has the name of a
// field is that field's pattern.
func readQuery(values url.Values) (q probe.Query, err error) {
	q.Resource, q.Subject, q.Key = values.Get("resource"), values.Get("subject"), values.Get("key")
	q.Type, q.Station = values.Get("type"), probe.Station(values.Get("station"))
	if points := values.Get("point"); points != "" {
		for name := range strings.SplitSeq(points, ",") {
			point, known := probe.PointNamed(name)
			if !known {
				return q, refuse(http.StatusBadRequest, "point: there is no %.40q", name)
			}
			q.Points = append(q.Points, point)
		}
	}
	q.RV, err = number(values, "rv", 0)
	return q, err
}

// serveTold answers GET /viz/told?resource=&key=&rv=&point=&subject= with what the records say that match, a sentence a
// line: for a terminal.
func (u *UI) serveTold(w http.ResponseWriter, r *http.Request) {
	want, err := readQuery(r.URL.Query())
	if err != nil {
		handlers.WriteError(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	harmless := func(r rune) rune { // clients choose names, and a terminal obeys what it is sent
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}
	log := u.config.Log
	for record := range log.Between(log.Oldest()-1, log.Last()) {
		if want.Matches(record) {
			fmt.Fprintln(w, strings.Map(harmless, log.Names().Sentence(record))) // the peer may have gone
		}
	}
}

// knows refuses a request about another process's log: its numbers mean nothing here.
func (u *UI) knows(r *http.Request) error {
	if id := r.URL.Query().Get("log"); id != "" && id != u.id {
		return refuse(http.StatusGone, "that is the log of another run of the program")
	}
	return nil
}

// number reads a sequence number, or returns otherwise if the query does not hold it.
func number(values url.Values, name string, otherwise uint64) (uint64, error) {
	text := values.Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, refuse(http.StatusBadRequest, "%s: want a number, got %.40q", name, text)
	}
	return n, nil
}
