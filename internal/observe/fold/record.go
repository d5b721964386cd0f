package fold

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"listwatch/internal/observe/probe"
)

// wireRecord is the JSON form of a record, in the feed and in recordings. Points go by name, so that a recording
// outlives a change of the table; resource versions are text, as on every wire here.
type wireRecord struct {
	Seq      uint64 `json:"seq"`
	T        int64  `json:"t"`
	Point    string `json:"point"`
	Resource string `json:"resource,omitempty"`
	Subject  string `json:"subject,omitempty"`
	Type     string `json:"type,omitempty"`
	Key      string `json:"key,omitempty"`
	RV       uint64 `json:"rv,omitempty,string"`
	Args     [4]int `json:"args"`
	Text     string `json:"text,omitempty"`
}

// AppendRecord appends the JSON form of r to dst and returns the extended slice.
func AppendRecord(dst []byte, r *probe.Record) []byte {
	dst = append(dst, `{"seq":`...)
	dst = strconv.AppendUint(dst, r.Seq, 10)
	dst = append(dst, `,"t":`...)
	dst = strconv.AppendInt(dst, int64(r.Time), 10)
	dst = appendText(dst, "point", r.Point.String())
	dst = appendText(dst, "resource", r.Resource)
	dst = appendText(dst, "subject", r.Subject)
	dst = appendText(dst, "type", r.Type)
	dst = appendText(dst, "key", r.Key)
	if r.RV != 0 {
		dst = append(dst, `,"rv":"`...)
		dst = strconv.AppendUint(dst, r.RV, 10)
		dst = append(dst, '"')
	}
	dst = appendArgs(dst, r.Point.Info().ArgNames(), r.Args)
	dst = appendText(dst, "text", r.Text)
	return append(dst, '}')
}

func appendArgs(dst []byte, names []string, args [4]int) []byte {
	if len(names) == 0 {
		return dst
	}
	dst = append(dst, `,"args":[`...)
	for i := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(args[i]), 10)
	}
	return append(dst, ']')
}

// appendText appends a member, or nothing if the text is empty. Texts are cut here as in the fold.
func appendText(dst []byte, name, text string) []byte {
	if text == "" {
		return dst
	}
	dst = append(dst, ',', '"')
	dst = append(dst, name...)
	dst = append(dst, '"', ':')
	quoted, err := json.Marshal(bound(text))
	if err != nil {
		panic(fmt.Sprintf("fold: a string is not JSON: %v", err))
	}
	return append(dst, quoted...)
}

// pointsByName finds points as they are written.
var pointsByName = byName(probe.Points())

func byName(all []probe.Point) map[string]probe.Point {
	names := make(map[string]probe.Point, len(all))
	for _, p := range all {
		names[p.String()] = p
	}
	return names
}

// ReadRecord returns the record written as JSON, with its texts cut as [AppendRecord] cuts them. A point that no longer
// exists is an error.
func ReadRecord(written []byte) (probe.Record, error) {
	var w wireRecord
	if err := json.Unmarshal(written, &w); err != nil {
		return probe.Record{}, fmt.Errorf("read record: %w", err)
	}
	point, ok := pointsByName[w.Point]
	if !ok {
		return probe.Record{}, fmt.Errorf("read record %d: no point %q: another version of the program wrote it",
			w.Seq, w.Point)
	}
	return probe.Record{
		Seq: w.Seq, Time: time.Duration(w.T), Point: point, Resource: bound(w.Resource), Subject: bound(w.Subject),
		Type: bound(w.Type), Key: bound(w.Key), RV: w.RV, Args: w.Args, Text: bound(w.Text),
	}, nil
}
