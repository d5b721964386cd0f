// Package lab holds the labs: exercises on the project's own sources. Start takes a working copy, breaks something in
// it or removes something, and describes the symptom. Check runs the chapters' own tests on the attendee's
// repair.
//
// The broken sources exist nowhere: they are made when a lab starts. The solution is the present source, which the
// ordinary tests prove; a test of this package makes every broken version and sees its check fail for the stated
// reason.
//
// Nothing here starts a goroutine or holds a lock.
package lab

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"listwatch/chapters"
	"listwatch/internal/observe/rules"
)

// Kind is what an attendee does in a lab.
type Kind string

const (
	Find    Kind = "find it"    // something is broken: find and mend it
	Build   Kind = "build it"   // the heart of a station is taken out: write it
	Predict Kind = "predict it" // no code: a question that a recording answers
)

// Lab is one exercise: a file chapters/CHAPTER/labs/ID.txtar. The file begins with these fields as YAML. A Find or a
// Build then has the text that is replaced, as whole lines; a Predict the answer, with the number of the record that
// shows it.
type Lab struct {
	ID      string   `json:"-"` // "bookmark-lies": what `go run ./cmd/lab start` is given
	Chapter string   `json:"-"` // folder of the chapter whose station it is: "06-cacher"
	Title   string   `json:"title"`
	Kind    Kind     `json:"kind"`
	Stars   int      `json:"stars"`   // 1 to 3: how hard
	Minutes int      `json:"minutes"` // 10 to 30
	Section string   `json:"read"`    // heading of the chapter's section to read first
	Symptom string   `json:"symptom"` // what a user would report; "" for a Predict
	Goal    string   `json:"goal"`    // what holds when the lab is solved
	Look    string   `json:"look"`    // what to do, and where to look on the stage, to see the symptom
	Hints   []string `json:"hints"`   // three: the last one is nearly the solution
	// of internal/observe/rules: the promise that is broken; 0 if it is not one of the ten
	Rule    int      `json:"rule"`
	Promise string   `json:"promise"`  // the promise in a sentence; "" if Rule names it
	Tests   []string `json:"tests"`    // patterns for -run: the chapter's tests that have to pass
	Fails   string   `json:"fails"`    // a part of the broken version's test output
	Take    string   `json:"take"`     // of a Predict: the recording, one of internal/observe/takes
	Ask     string   `json:"question"` // of a Predict
	Answer  string   `json:"-"`        // of a Predict: one word or one number
	Proof   uint64   `json:"-"`        // the record of the Take that shows it

	// the declaration that is changed, as internal/text/source names it: "Cacher.dispatchEvent"
	Symbol string `json:"-"`
	Old    string `json:"-"` // occurs once in it, its doc comment included; "": its whole body …
	New    string `json:"-"` // … is replaced by this
}

// All returns the labs that the program was built with.
func All() []Lab { return slices.Clone(embedded()) }

var embedded = sync.OnceValue(func() []Lab {
	all, err := Load(chapters.FS())
	if err != nil {
		panic(err) // a test loads them
	}
	return all
})

// Load reads the labs of the chapters in fsys, in the order of the chapters; within a chapter the easy ones come first.
// The error names the file that is malformed.
func Load(fsys fs.FS) ([]Lab, error) {
	names, err := fs.Glob(fsys, "*/labs/*.txtar")
	if err != nil {
		return nil, err
	}
	var all []Lab
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		l, err := parse(txtar.Parse(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		l.Chapter, l.ID = path.Dir(path.Dir(name)), strings.TrimSuffix(path.Base(name), ".txtar")
		all = append(all, l)
	}
	slices.SortStableFunc(all, func(a, b Lab) int {
		return cmp.Or(strings.Compare(a.Chapter, b.Chapter), a.Stars-b.Stars)
	})
	return all, nil
}

// parse reads a lab's file. In a working copy of the lab it ends after the fields.
func parse(file *txtar.Archive) (l Lab, err error) {
	if err := yaml.UnmarshalStrict(file.Comment, &l); err != nil {
		return l, err
	}
	for _, section := range file.Files {
		name, symbol, _ := strings.Cut(section.Name, ": ")
		switch name {
		case "old":
			l.Symbol, l.Old = symbol, string(section.Data)
		case "new":
			l.New = string(section.Data)
		case "body":
			l.Symbol, l.New = symbol, string(section.Data)
		case "answer":
			l.Answer = strings.TrimSpace(string(section.Data))
			l.Proof, err = strconv.ParseUint(symbol, 10, 64)
		default:
			err = fmt.Errorf("section %q: want old: SYMBOL and new, body: SYMBOL, or answer: RECORD", section.Name)
		}
		if err != nil {
			return l, err
		}
	}
	return l, nil
}

// ByID returns the lab of that id. The error has the command that lists the labs.
func ByID(id string) (Lab, error) { return byID(All(), id) }

func byID(all []Lab, id string) (Lab, error) {
	if i := slices.IndexFunc(all, func(l Lab) bool { return l.ID == id }); i >= 0 {
		return all[i], nil
	}
	return Lab{}, fmt.Errorf("there is no lab %q: `go run ./cmd/lab` lists them", id)
}

// Describe returns the lab's text, which an attendee reads first.
func (l Lab) Describe() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s (%s, %s, about %d minutes)\n\n", l.Title, l.Kind, strings.Repeat("*", l.Stars), l.Minutes)
	if l.Kind == Predict {
		fmt.Fprintf(&text, "Question  %s\nTry       %s\nAnswer    into %s\n", l.Ask, l.replay(), answerFile)
	} else {
		fmt.Fprintf(&text, "Symptom   %s\nGoal      %s\nSee it    %s\n", l.Symptom, l.Goal, l.Look)
	}
	if l.Kind == Build {
		fmt.Fprintf(&text, "Write     %s in %s\n", l.Symbol, l.dir())
	}
	fmt.Fprintf(&text, "Read      %s/README.md, %q\n", l.dir(), l.Section)
	return text.String()
}

// promise is the promise that does not hold before the lab is solved.
func (l Lab) promise() string {
	if l.Rule > 0 {
		return rules.All[l.Rule-1].Text
	}
	return l.Promise
}

// dir is the folder of the lab's chapter in a checkout.
func (l Lab) dir() string { return "chapters/" + l.Chapter }

// testCommand is the command that runs the lab's tests.
func (l Lab) testCommand() string {
	return fmt.Sprintf("go test ./%s -run '%s'", l.dir(), strings.Join(l.Tests, "|"))
}
