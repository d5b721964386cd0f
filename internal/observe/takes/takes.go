// Package takes holds short recordings of the whole pipeline. Chapters show them beside their text, stories are told
// from them, and screenshots are taken of them. `make recordings` makes them: it runs the pipeline in a bubble with
// fake time and no socket. Two runs differ only in which of two ready goroutines comes first.
//
// Everything here is immutable; this package has no lock and no goroutine.
package takes

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/recording"
)

//go:embed *.lw.gz
var files embed.FS

// StoryPrefix begins the name of the take of a story (internal/play/scenario); the story's id follows.
const StoryPrefix = "story-"

// LabPrefix begins the name of the take of a first try; the id of the lab (internal/play/lab) follows whose broken
// version of a chapter it was recorded from.
const LabPrefix = "lab-"

// Suffix is that of a recording's file.
const Suffix = ".lw.gz"

// Take is one recording that the program brings along.
type Take struct {
	Name  string // of its file, without [Suffix]
	Title string // what happens in it
	Key   string // the object that it is about
}

// All are the takes that are not of stories: chapters and screenshots show them.
var All = []Take{
	{"start", "Both halves start: the caches list and watch etcd, the informer lists and watches the caches",
		"default/a"},
	{"life", "A pod is created, scheduled, run, changed and deleted", "default/a"},
	{"busy", "Pods come and go while a client that watches them all has stopped reading", "default/a"},
	{"ring", "The history of ten events is overrun, and a watch asks for what it no longer holds", "default/a"},
	{"slow", "A watcher does not read: its channels fill, the budget runs out, it is sent away", "default/a"},
}

// Broken are the takes of first tries: chapters show them before the repair. Their titles ask what the text asks.
var Broken = []Take{
	{LabPrefix + "hole-in-history", "A watch resumes from what the ring no longer holds. Is it told?", "default/a"},
	{LabPrefix + "build-the-table", "A watcher filters by the verb. What is its client told of a new pod?",
		"default/a"},
	{LabPrefix + "one-slow-all-slow", "The laptop reads slowly. What does the desk notice?", "default/a"},
	{LabPrefix + "build-replace", "A list comes in object by object. What becomes of a deleted pod?", "default/b"},
	{LabPrefix + "build-pop", "A handler takes a second. When is the handler beside it called?", "default/a"},
	{LabPrefix + "lost-wish", "A pod changes while a worker has its key. Does the worker come back?", "default/a"},
}

// Every returns every take, those of the stories in internal/play/scenario included: each is up to where the last beat
// of its story rests, and has only a name.
func Every() (every []Take) {
	names, _ := fs.Glob(files, "*"+Suffix) // the pattern is well-formed
	for _, name := range names {
		take, _ := Find(strings.TrimSuffix(name, Suffix))
		every = append(every, take)
	}
	return every
}

// Find returns the take of that name; ok is false if there is none.
func Find(name string) (take Take, ok bool) {
	for _, take := range slices.Concat(All, Broken) {
		if take.Name == name {
			return take, true
		}
	}
	_, err := fs.Stat(files, name+Suffix)
	return Take{Name: name}, err == nil
}

// Lab returns the id of the lab whose broken version was recorded, "" if the take is of the code as it is.
func (t Take) Lab() string {
	id, broken := strings.CutPrefix(t.Name, LabPrefix)
	if !broken {
		return ""
	}
	return id
}

// File returns the recording's file. The caller owns it.
func (t Take) File() []byte {
	file, err := files.ReadFile(t.Name + Suffix)
	if err != nil {
		panic(fmt.Sprintf("takes: %v", err))
	}
	return file
}

// Load reads the take and returns its records, and the picture before the first of them. Both are the caller's own. An
// error means that the file is of another version of the program: a test finds that.
func (t Take) Load() (*fold.State, []probe.Record, error) {
	rec, err := recording.Read(context.Background(), bytes.NewReader(t.File()))
	if err != nil {
		return nil, nil, fmt.Errorf("take %s: %w", t.Name, err)
	}
	return rec.Start, rec.Records, nil
}
