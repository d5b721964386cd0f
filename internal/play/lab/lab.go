// Package lab holds the labs: exercises on the project's own sources. Start makes a working copy, and breaks or removes
// a part of it. Check runs the chapters' own tests on the attendee's repair.
//
// The repository has no broken sources: Start makes them. The solution is the present source, which the ordinary tests
// check. Tests here make the broken versions and, with FULL=1, require that each fails for the stated reason.
//
// The path is one working copy with the first tries of the build-it labs of thirteen chapters.
//
// Only the player of a script starts goroutines, and it waits for them.
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

// Kind is the kind of task that a lab sets.
type Kind string

// The kinds of labs.
const (
	Find    Kind = "find it"    // find and repair a bug
	Build   Kind = "build it"   // write the missing body of a station's main function
	Predict Kind = "predict it" // answer a question about a recording, without code
)

// Lab is one exercise: a file chapters/CHAPTER/labs/ID.txtar. The file begins with YAML, the fields with json names.
// A Find or a Build then has its edit: whole lines and their replacement, or the new body of a declaration. A Predict
// has the answer, and the number of the record that shows the answer.
type Lab struct {
	ID      string   `json:"-"` // "bookmark-lies", the argument of `go run ./cmd/lab start`
	Chapter string   `json:"-"` // folder of the lab's chapter: "06-cacher"
	Title   string   `json:"title"`
	Kind    Kind     `json:"kind"`
	Stars   int      `json:"stars"`   // difficulty, 1 to 3
	Minutes int      `json:"minutes"` // duration, 10 to 30
	Section string   `json:"read"`    // heading of the chapter's section to read first
	Symptom string   `json:"symptom"` // a user's report of the problem; "" for a Predict
	Goal    string   `json:"goal"`    // the behaviour of a solved lab
	Look    string   `json:"look"`    // instructions for seeing the symptom on the stage
	Hints   []string `json:"hints"`   // three; the last one is nearly the solution
	// The number of the promise that the lab breaks, in internal/observe/rules; 0: the lab breaks none of the ten.
	Rule    int      `json:"rule"`
	Promise string   `json:"promise"`  // the promise in a sentence; "" if Rule gives it
	Tests   []string `json:"tests"`    // patterns for -run: tests of the chapter that must pass
	Fails   string   `json:"fails"`    // a part of the test output for the broken version
	Take    string   `json:"take"`     // the recording of a Predict, one of internal/observe/takes
	Ask     string   `json:"question"` // the question of a Predict
	Answer  string   `json:"-"`        // the answer of a Predict: one word or one number
	Proof   uint64   `json:"-"`        // number of the record of the Take that shows the answer

	Dir     string   `json:"dir"`     // the folder of the sources, if it is not the chapter's
	Step    int      `json:"step"`    // number on the path; 0: not on the path
	Station string   `json:"station"` // a step's station on the stage, marked there if the step is the reader's own
	Flags   []string `json:"flags"`   // the program's flags for a step's script
	Script  []Action `json:"drive"`   // shows the symptom, and checks that a solution removes it

	// The declaration that the lab changes, as internal/text/source names it: "Cacher.dispatchEvent".
	Symbol string `json:"-"`
	Old    string `json:"-"` // the replaced text, unique in the declaration and its doc comment; "": the whole body
	New    string `json:"-"` // the replacement
}

// All returns the labs that the program was built with.
func All() []Lab { return slices.Clone(embedded()) }

var embedded = sync.OnceValue(func() []Lab {
	all, err := Load(chapters.FS())
	if err != nil {
		panic(err) // cannot happen: a test loads the same files
	}
	return all
})

// Load reads the labs of the chapters in fsys, in the order of the chapters; within a chapter the easy ones come first.
// The error names the malformed file.
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

// parse reads a lab's file. In the lab's working copy the file lacks the edit or the answer.
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

// ByID returns the lab with that id. The error names the command that lists the labs.
func ByID(id string) (Lab, error) { return byID(All(), id) }

func byID(all []Lab, id string) (Lab, error) {
	if i := slices.IndexFunc(all, func(l Lab) bool { return l.ID == id }); i >= 0 {
		return all[i], nil
	}
	return Lab{}, fmt.Errorf("there is no lab %q: `go run ./cmd/lab` lists them", id)
}

// Describe returns the lab's text for attendees.
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
	fmt.Fprintf(&text, "Read      chapters/%s/README.md, %q\n", l.Chapter, l.Section)
	return text.String()
}

// promise returns the promise that the unsolved lab breaks.
func (l Lab) promise() string {
	if l.Rule > 0 {
		return rules.All[l.Rule-1].Text
	}
	return l.Promise
}

// dir returns the folder of the lab's sources in a checkout: by default its chapter's.
func (l Lab) dir() string { return cmp.Or(l.Dir, "chapters/"+l.Chapter) }

// TestCommand returns the command that runs the lab's tests.
func (l Lab) TestCommand() string {
	if l.Dir != "" {
		return "cd " + l.Dir + "; go test . # against the machine at 127.0.0.1:8080"
	}
	return fmt.Sprintf("go test ./%s -run '%s'", l.dir(), strings.Join(l.Tests, "|"))
}
