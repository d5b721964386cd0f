// Package lab holds the labs: exercises on the project's own sources. Each takes a working copy, breaks something in it
// or takes something out, says what a user would notice, and checks the attendee's repair with the chapters' own tests.
//
//   - lab.go: [Lab], what one lab is. The labs themselves are in find.go, build.go and predict.go.
//   - edit.go: [Edit], how a broken version is made from the present sources. An edit is anchored on a symbol, so an edit
//     whose place has changed fails a test.
//   - copy.go: [Start] writes a working copy.
//   - check.go: [Check] runs the tests of a lab in a copy, and says in a few lines what is still wrong.
//   - checked.go: [Checked], the last check, kept in the copy for the page of a program that runs there.
//
// The broken sources exist nowhere: they are made when a lab starts. The solution is the present source, which the
// ordinary tests prove; a test of this package makes every broken version and sees its check fail for the stated reason.
//
// Nothing here starts a goroutine or holds a lock.
package lab

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is what an attendee does in a lab.
type Kind string

const (
	Find    Kind = "find it"    // something is broken: find and mend it
	Build   Kind = "build it"   // the heart of a station is taken out: write it
	Predict Kind = "predict it" // no code: a question that a recording answers
)

// Lab is one exercise.
type Lab struct {
	ID      string // "bookmark-lies": what `go run ./cmd/lab start` is given
	Title   string
	Kind    Kind
	Chapter string // folder of the chapter whose station it is: "06-cacher"
	Section string // heading of the section to read first
	Stars   int    // 1 to 3: how hard
	Minutes int    // 10 to 30
	Goal    string // what holds when the lab is solved
	Symptom string // what a user would report; of a Predict the question
	Look    string // what to look at on the stage, and what to do to see it
	Hints   []string
	Rule    int    // of internal/rules: the promise that is broken; 0 if it is not one of the ten
	Promise string // the promise in a sentence
	Edits   []Edit // how the broken version is made; none for a Predict
	Tests   []Test // which have to pass
	Reason  string // what the tests say about the broken version, in part
	Record  string // the record of the test's story that shows it, in part; "": none does
	Ask     *Question
}

// Test names tests of one package.
type Test struct {
	Package string // "./chapters/06-cacher"
	Run     string // for -run
}

// String returns the test as a command.
func (t Test) String() string { return fmt.Sprintf("go test %s -run '%s'", t.Package, t.Run) }

// All returns every lab, in the order of the chapters; within a chapter the easy ones come first.
func All() []Lab {
	all := slices.Concat(finds, builds, predictions)
	slices.SortStableFunc(all, func(a, b Lab) int {
		if c := strings.Compare(a.Chapter, b.Chapter); c != 0 {
			return c
		}
		return a.Stars - b.Stars
	})
	return all
}

// ByID returns the lab of that id. The error says how to see the others.
func ByID(id string) (Lab, error) {
	for _, each := range All() {
		if each.ID == id {
			return each, nil
		}
	}
	return Lab{}, fmt.Errorf("there is no lab %q: `go run ./cmd/lab` lists them", id)
}

// Describe returns the lab's text: what an attendee reads first.
func (l Lab) Describe() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s (%s, %s, about %d minutes)\n\n", l.Title, l.Kind, strings.Repeat("*", l.Stars), l.Minutes)
	if l.Ask != nil {
		fmt.Fprintf(&text, "Question  %s\nTry       %s\nAnswer    into %s\n", l.Ask.Text, l.Ask.command(), answerFile)
	} else {
		fmt.Fprintf(&text, "Symptom   %s\nGoal      %s\nSee it    %s\n", l.Symptom, l.Goal, l.Look)
	}
	if l.Kind == Build {
		fmt.Fprintf(&text, "Write     %s in %s\n", l.Edits[0].Symbol, l.Edits[0].Dir)
	}
	fmt.Fprintf(&text, "Read      chapters/%s/README.md, %q\n", l.Chapter, l.Section)
	return text.String()
}
