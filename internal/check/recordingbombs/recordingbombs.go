// Package recordingbombs makes recordings that need far more memory than their files, like zip bombs. An attacker or a
// broken disk may write such files.
package recordingbombs

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
)

// Greedy is a recording that needs too much memory: a beginning, n parts, and an end.
type Greedy struct {
	Name    string
	Refusal string // part of the error that recording.Read returns and the page shows
	begin   string
	n       int
	part    string // a format for i, from 1 to n, and for 2i-1 and 2i
	end     string
}

const (
	// records is the text before the records. picture is the text before the resources of a keyframe, and seen is the
	// text after these resources.
	records = `{"format":"listwatch recording","version":1}` + "\n"
	picture = `{"format":"listwatch recording","version":1,"keyframe":{"seq":1,"resources":{`
	seen    = `}}}` + "\n" + `{"seq":2,"point":"RingAppend","resource":"pods","args":[0,1,100,1]}` + "\n"

	wait = `{"seq":%[1]d,"t":1,"point":"","kind":"","subject":"","lane":"","on":"","type":"","key":"","rv":"1"}`
)

// All lists the greedy recordings except LongTexts.
var All = []Greedy{
	{"many resources", "more than the 512 resources", records, 100_000,
		`{"seq":%[1]d,"point":"RingAppend","resource":"r%[1]d","args":[0,1,100,1]}` + "\n", ""},
	{"many subjects", "more than the 50000 subjects", records, 120_000,
		`{"seq":%[1]d,"point":"WatcherAdded","resource":"pods","subject":"w%[1]d","args":[10]}` + "\n", ""},
	{"many stores", "more than the 50000 subjects", records, 60_000, // a store outlives its subject
		`{"seq":%[2]d,"point":"IndexerUpdated","resource":"pods","subject":"s%[1]d","key":"default/a","args":[1]}` +
			"\n" + `{"seq":%[3]d,"point":"WatcherRemoved","resource":"pods","subject":"s%[1]d"}` + "\n", ""},
	{"many waits", "more than the 50000 subjects", records, 60_000,
		`{"seq":%[1]d,"point":"FreshnessWait","resource":"pods","subject":"cacher","rv":"%[1]d"}` + "\n", ""},
	{"a picture of many resources", "more than the 512 resources", picture + `"pods":{}`, 300_000,
		`,"r%[1]d":{}`, seen},
	{"a picture of many subjects", "more than the 50000 subjects", picture + `"pods":{"subjects":{"a":{}`, 400_000,
		`,"w%[1]d":{}`, `}}` + seen},
	{"a picture of many waits", "more than the 50000 subjects",
		picture + `"pods":{"waits":{"a":[` + fmt.Sprintf(wait, 0), 60_000, "," + wait, `]}}` + seen},
}

// LongTexts has few records, each with a text of 1 MB. Unpacking it takes seconds.
var LongTexts = Greedy{"long texts", "longer than the 512 MB", records, 950,
	`{"seq":%[1]d,"point":"RingAppend","resource":"pods","texts":{"why":"%[1]d` +
		strings.Repeat("long", 1<<18) + "\"}}\n", ""}

// File makes the recording and returns it, compressed with gzip.
func (g Greedy) File() []byte {
	var file bytes.Buffer
	zip, err := gzip.NewWriterLevel(&file, gzip.BestSpeed)
	if err != nil {
		panic(err)
	}
	fmt.Fprint(zip, g.begin)
	for i := 1; i <= g.n; i++ {
		fmt.Fprintf(zip, g.part, i, 2*i-1, 2*i)
	}
	fmt.Fprint(zip, g.end)
	if err := zip.Close(); err != nil {
		panic(err)
	}
	return file.Bytes()
}
