package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"listwatch/internal/text/source"
)

// The path is one working copy for all steps. A step is a build-it lab of a chapter from 02 to 14; at first its body is
// the chapter's first try. The copy's PathFolder holds, for each step, a file with its state, and our source of it.
const (
	PathFolder = ".path"
	pathID     = "path"                // the id in the working copy's marker
	yoursFile  = "viz/stage/yours.txt" // a file of a working copy with the stations that the reader has built
)

// The states of a step.
const (
	Open   = "open"   // the body is the first try, or has not passed the check yet
	Yours  = "yours"  // the reader's body has passed the check
	Passed = "passed" // the body is our source
)

// Steps returns the labs on the path, in its order.
func Steps() []Lab {
	steps := slices.DeleteFunc(All(), func(l Lab) bool { return l.Step == 0 })
	slices.SortFunc(steps, func(a, b Lab) int { return cmp.Compare(a.Step, b.Step) })
	return steps
}

// StartPath writes the checkout's committed tree into dir, with all steps open. dir must be empty or not exist.
func StartPath(root, dir string) error {
	return start(root, dir, pathID, func(dir string) (err error) {
		for _, l := range Steps() {
			err = errors.Join(err, l.open(dir))
		}
		return err
	})
}

// open replaces our source of a step with the first try, saves our source, and marks the step as open.
func (l Lab) open(dir string) error {
	name, ours, _, err := l.Break(os.DirFS(dir))
	kept := filepath.Join(dir, PathFolder, l.ID, filepath.FromSlash(name))
	if err := errors.Join(err, os.MkdirAll(filepath.Dir(kept), 0o755)); err != nil {
		return err
	}
	err = errors.Join(os.WriteFile(kept, ours, 0o644), l.prepare(dir), l.setState(dir, Open))
	file := filepath.Join(dir, "chapters", l.Chapter, "labs", l.ID+".txtar")
	text, wrong := os.ReadFile(file) // prepare has removed the symbol from the file, but readers of the path may see it
	return errors.Join(err, wrong, os.WriteFile(file, fmt.Appendf(text, "-- body: %s --\n", l.Symbol), 0o644))
}

// IsPath reports whether dir is a working copy of the path.
func IsPath(dir string) bool {
	id, _ := marked(dir)
	return id == pathID
}

// State returns the state of a step in the working copy dir, or Open if dir has none.
func (l Lab) State(dir string) string {
	text, _ := os.ReadFile(filepath.Join(dir, PathFolder, l.ID, "state")) // fails if dir is damaged or no working copy
	return cmp.Or(string(text), Open)
}

// setState saves the state of a step, and writes the list of the reader's stations, which the stage shows.
func (l Lab) setState(dir, state string) error {
	err := os.WriteFile(filepath.Join(dir, PathFolder, l.ID, "state"), []byte(state), 0o644)
	var yours strings.Builder
	for _, each := range Steps() {
		if each.State(dir) == Yours {
			yours.WriteString(each.Station + "\n")
		}
	}
	marks := filepath.Join(dir, filepath.FromSlash(yoursFile))
	return errors.Join(err, os.WriteFile(marks, []byte(yours.String()), 0o644))
}

// CheckStep runs the step's tests in the working copy dir, unless the step's sources are outside its chapter. If they
// pass, it drives the built program. If that has no problem and keeps the step's promise, an open step becomes Yours.
func CheckStep(ctx context.Context, dir string, l Lab, progress io.Writer) (Verdict, error) {
	verdict, err := Verdict{Solved: true, Says: []string{"its tests pass against this machine"}}, error(nil)
	if l.Dir == "" {
		verdict, err = l.check(ctx, dir, checkLimit, progress)
	}
	if err != nil || !verdict.Solved {
		return verdict, err
	}
	problem, broken, err := l.Drive(ctx, dir, progress)
	switch {
	case err != nil:
		return Verdict{}, err
	case problem != "":
		return Verdict{Says: []string{"Not yet. The built program: " + problem}}, nil
	case slices.Contains(broken, l.Rule):
		return Verdict{Says: []string{fmt.Sprintf("Not yet. Promise %d is broken: %s", l.Rule, l.promise())}}, nil
	}
	if l.State(dir) == Open {
		err = l.setState(dir, Yours)
	}
	return verdict, err
}

// Both returns the step's declarations: the reader's in the working copy dir, and ours.
func (l Lab) Both(dir string) (theirs, ours *source.Decl, err error) {
	theirs, wrong := l.declaration(os.DirFS(dir))
	ours, err = l.declaration(os.DirFS(filepath.Join(dir, PathFolder, l.ID)))
	return theirs, ours, errors.Join(wrong, err)
}

// Pass replaces the reader's file of the step with ours, and marks the step as Passed.
func (l Lab) Pass(dir string) error {
	ours, err := l.declaration(os.DirFS(filepath.Join(dir, PathFolder, l.ID)))
	if err != nil {
		return err
	}
	name := filepath.Join(dir, l.dir(), ours.File.Path)
	return errors.Join(os.WriteFile(name, ours.File.Src, 0o644), l.setState(dir, Passed))
}
