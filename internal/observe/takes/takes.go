// Package takes holds short recordings of the whole pipeline. Chapters and screenshots show them, stories play them,
// and labs ask about them. `make recordings` makes them: it runs the pipeline in a bubble with fake time and no socket.
// Two runs differ only in the order of goroutines that are ready at the same time.
//
// Everything here is immutable; takes.sum summarizes what each take shows.
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

// LabPrefix begins the name of the take of a first try, which is a lab's broken version of a chapter's code. The lab's
// id (internal/play/lab) follows.
const LabPrefix = "lab-"

// Suffix ends the name of a recording's file.
const Suffix = ".lw.gz"

// Take is one recording that is built into the program.
type Take struct {
	Name  string // the name of the file, without [Suffix]
	Title string // its events in one line or, in [Broken], a question about them; "" for a story's take
	Key   string // the object that the take is about
}

// All lists the takes of working code, except those of stories: chapters, screenshots and labs' questions show them.
var All = []Take{
	{"start", "Both halves start: the caches list and watch etcd, the informer lists and watches the caches",
		"default/a"},
	{"life", "A pod is created, scheduled, run, changed and deleted", "default/a"},
	{"busy", "Pods come and go while a client that watches them all has stopped reading", "default/a"},
	{"ring", "The history of ten events is overrun, and a watch asks for what it no longer holds", "default/a"},
	{"slow", "A watcher does not read: its channels fill, the budget runs out, it is sent away", "default/a"},
}

// Broken lists the takes of first tries: chapters show them before repairs. Each title repeats the chapter's question.
var Broken = []Take{
	{LabPrefix + "hole-in-history", "A watch resumes from what the ring no longer holds. Is it told?", "default/a"},
	{LabPrefix + "build-the-table", "A watcher filters by the verb. What is its client told of a new pod?",
		"default/a"},
	{LabPrefix + "one-slow-all-slow", "The laptop reads slowly. What does the desk notice?", "default/a"},
	{LabPrefix + "build-replace", "A list comes in object by object. What becomes of a deleted pod?", "default/b"},
	{LabPrefix + "build-pop", "A handler takes a second. When is the handler beside it called?", "default/a"},
	{LabPrefix + "lost-wish", "A pod changes while a worker has its key. Does the worker come back?", "default/a"},
}

// Every returns every take, including those of the stories in internal/play/scenario. A story's take has only a name,
// and ends where the story's last beat rests.
func Every() (every []Take) {
	names, _ := fs.Glob(files, "*"+Suffix) // no error: the pattern is well-formed
	for _, name := range names {
		take, _ := Find(strings.TrimSuffix(name, Suffix))
		every = append(every, take)
	}
	return every
}

// Find returns the take with that name; ok is false if there is none.
func Find(name string) (take Take, ok bool) {
	for _, take := range slices.Concat(All, Broken) {
		if take.Name == name {
			return take, true
		}
	}
	_, err := fs.Stat(files, name+Suffix)
	return Take{Name: name}, err == nil
}

// Lab returns the id of the lab with whose broken code the take was recorded, or "" if the code was not broken.
func (t Take) Lab() string {
	id, broken := strings.CutPrefix(t.Name, LabPrefix)
	if !broken {
		return ""
	}
	return id
}

// File returns the recording's file, which the caller owns. It panics if there is none.
func (t Take) File() []byte {
	file, err := files.ReadFile(t.Name + Suffix)
	if err != nil {
		panic(fmt.Sprintf("takes: %v", err))
	}
	return file
}

// Load reads the take and returns the picture before its first record, and its records. The caller owns both. An error
// means that another version of the program wrote the file; a test loads every take.
func (t Take) Load() (*fold.State, []probe.Record, error) {
	rec, err := recording.Read(context.Background(), bytes.NewReader(t.File()))
	if err != nil {
		return nil, nil, fmt.Errorf("take %s: %w", t.Name, err)
	}
	return rec.Start, rec.Records, nil
}
