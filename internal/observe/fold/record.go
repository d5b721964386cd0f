package fold

import (
	"encoding/json"
	"errors"
	"fmt"

	"listwatch/internal/observe/probe"
)

// AppendRecord appends the JSON form of r, in the feed and in recordings, to dst and returns the extended slice. Texts
// are cut here as in the fold.
func AppendRecord(dst []byte, r *probe.Record) []byte {
	written, err := json.Marshal(struct {
		probe.Record
		Args []int `json:"args,omitempty"` // as many as the point declares
	}{bounded(r), r.Args[:len(r.Point.Info().Args.List())]})
	if err != nil {
		panic(fmt.Sprintf("fold: a record is not JSON: %v", err)) // texts and numbers always are
	}
	return append(dst, written...)
}

// ReadRecord returns the record written as JSON, with its texts cut as [AppendRecord] cuts them. A point that no longer
// exists is an error.
func ReadRecord(written []byte) (probe.Record, error) {
	var r probe.Record
	err := json.Unmarshal(written, &r)
	if err == nil && r.Point == 0 {
		err = errors.New("it names no point")
	}
	if err != nil {
		return probe.Record{}, fmt.Errorf("read record %d: %w", r.Seq, err)
	}
	return bounded(&r), nil
}

// bounded returns a record with its texts cut.
func bounded(r *probe.Record) probe.Record {
	cut := *r
	for _, text := range []*string{&cut.Resource, &cut.Subject, &cut.Type, &cut.Key, &cut.Text} {
		*text = probe.Bound(*text)
	}
	return cut
}
