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

// AppendNext appends the JSON form of r to a list of them that is being written.
func AppendNext(list []byte, r *probe.Record) []byte {
	if len(list) > 1 {
		list = append(list, ',')
	}
	return AppendRecord(list, r)
}

// ReadRecord returns the record written as JSON, with its texts cut as [AppendRecord] cuts them. A record of a point
// that this program does not have becomes one of [probe.Unknown], whose text is that name.
func ReadRecord(written []byte) (probe.Record, error) {
	var r struct {
		probe.Record
		Point string `json:"point"`
	}
	err := json.Unmarshal(written, &r)
	if err == nil && r.Point == "" {
		err = errors.New("it names no point")
	}
	if err != nil {
		return probe.Record{}, fmt.Errorf("read record %d: %w", r.Seq, err)
	}
	known := false
	if r.Record.Point, known = probe.PointNamed(r.Point); !known {
		r.Args, r.Texts = [4]int{}, probe.NewTexts(map[string]string{string(probe.FieldName): r.Point})
	}
	return bounded(&r.Record), nil
}

// bounded returns a record with its texts cut.
func bounded(r *probe.Record) probe.Record {
	cut := *r
	for _, text := range []*string{&cut.Resource, &cut.Subject, &cut.Type, &cut.Key} {
		*text = probe.Bound(*text)
	}
	return cut
}
