// Package recordingtest makes recordings that would take far more memory than their files, as an attacker or a broken
// disk may write them.
package recordingtest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
)

// Greedy is one such recording.
type Greedy struct {
	Name    string
	Refusal string // what Read and the page say of it
	write   func(w io.Writer)
}

// header is a recording's first line without its end.
const header = `{"format":"listwatch recording","version":1`

// All are the greedy recordings there are.
var All = []Greedy{
	{"many resources", "more than the 512 resources", func(w io.Writer) {
		records(w, 100_000, `"point":"RingAppend","resource":"r%d","args":[0,1,100,1]`)
	}},
	{"many subjects", "more than the 50000 subjects", func(w io.Writer) {
		records(w, 120_000, `"point":"WatcherAdded","resource":"pods","subject":"w%d","args":[10]`)
	}},
	{"many stores", "more than the 50000 subjects", func(w io.Writer) {
		fmt.Fprintln(w, header+"}")
		for i := 1; i < 120_000; i += 2 { // a store outlives its subject
			fmt.Fprintf(w,
				`{"seq":%d,"point":"IndexerUpdated","resource":"pods","subject":"s%[1]d","key":"default/a","args":[1]}`+"\n", i)
			fmt.Fprintf(w, `{"seq":%d,"point":"WatcherRemoved","resource":"pods","subject":"s%d"}`+"\n", i+1, i)
		}
	}},
	{"many waits", "more than the 50000 subjects", func(w io.Writer) {
		records(w, 60_000, `"point":"FreshnessWait","resource":"pods","subject":"cacher","rv":"%d"`)
	}},
	{"a picture of many resources", "more than the 512 resources", func(w io.Writer) {
		picture(w, `"resources":{%s}`, 300_000, `"r%d":{}`)
	}},
	{"a picture of many subjects", "more than the 50000 subjects", func(w io.Writer) {
		picture(w, `"resources":{"pods":{"subjects":{%s}}}`, 400_000, `"w%d":{}`)
	}},
	{"a picture of many waits", "more than the 50000 subjects", func(w io.Writer) {
		picture(w, `"resources":{"pods":{"waits":{"a":[%s]}}}`, 60_000,
			`{"seq":%d,"t":1,"point":"","kind":"","subject":"","lane":"","on":"","type":"","key":"","rv":"1"}`)
	}},
}

// LongTexts is one of few records and many bytes; it takes seconds to unpack.
var LongTexts = Greedy{"long texts", "longer than the 512 MB", func(w io.Writer) {
	records(w, 950, `"point":"RingAppend","resource":"pods","text":"%d`+strings.Repeat("long", 1<<18)+`"`)
}}

// File returns the recording.
func (g Greedy) File() []byte {
	var file bytes.Buffer
	zip, err := gzip.NewWriterLevel(&file, gzip.BestSpeed)
	if err != nil {
		panic(err)
	}
	g.write(zip)
	if err := zip.Close(); err != nil {
		panic(err)
	}
	return file.Bytes()
}

// records writes n records after a header. fields has a place for each one's number.
func records(w io.Writer, n int, fields string) {
	fmt.Fprintln(w, header+"}")
	for i := range n {
		fmt.Fprintf(w, `{"seq":%d,`+fields+"}\n", i+1, i+1)
	}
}

// picture writes a header with a picture, in which n parts take the place in fields, and one record.
func picture(w io.Writer, fields string, n int, part string) {
	before, after, _ := strings.Cut(fields, "%s")
	fmt.Fprint(w, header+`,"keyframe":{"seq":1,`+before)
	for i := range n {
		if i > 0 {
			fmt.Fprint(w, ",")
		}
		fmt.Fprintf(w, part, i)
	}
	fmt.Fprintln(w, after+"}}\n"+`{"seq":2,"point":"RingAppend","resource":"pods","args":[0,1,100,1]}`)
}
