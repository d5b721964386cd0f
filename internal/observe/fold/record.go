package fold

import (
	"encoding/json"
	"fmt"
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
	Args     []int  `json:"args,omitempty"`
	Text     string `json:"text,omitempty"`
}

// AppendRecord appends the JSON form of r to dst and returns the extended slice. Texts are cut here as in the fold.
func AppendRecord(dst []byte, r *probe.Record) []byte {
	info := r.Point.Info()
	written, err := json.Marshal(wireRecord{
		Seq: r.Seq, T: int64(r.Time), Point: info.Name, Resource: Bound(r.Resource), Subject: Bound(r.Subject),
		Type: Bound(r.Type), Key: Bound(r.Key), RV: r.RV, Args: r.Args[:len(info.ArgNames())], Text: Bound(r.Text),
	})
	if err != nil {
		panic(fmt.Sprintf("fold: a record is not JSON: %v", err)) // texts and numbers always are
	}
	return append(dst, written...)
}

// ReadRecord returns the record written as JSON, with its texts cut as [AppendRecord] cuts them. A point that no longer
// exists is an error.
func ReadRecord(written []byte) (probe.Record, error) {
	var w wireRecord
	if err := json.Unmarshal(written, &w); err != nil {
		return probe.Record{}, fmt.Errorf("read record: %w", err)
	}
	point, ok := probe.PointNamed(w.Point)
	if !ok {
		return probe.Record{}, fmt.Errorf("read record %d: no point %q: another version of the program wrote it",
			w.Seq, w.Point)
	}
	r := probe.Record{
		Seq: w.Seq, Time: time.Duration(w.T), Point: point, Resource: Bound(w.Resource), Subject: Bound(w.Subject),
		Type: Bound(w.Type), Key: Bound(w.Key), RV: w.RV, Text: Bound(w.Text),
	}
	copy(r.Args[:], w.Args)
	return r, nil
}
