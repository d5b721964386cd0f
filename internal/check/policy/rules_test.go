package policy

import (
	"fmt"
	"io/fs"
	"strings"

	"listwatch/internal/text/source"
)

// Module is the path of the module whose rules these are.
const Module = "listwatch"

// Repo is the repository as the rules see it.
type Repo struct {
	FS   fs.FS // rooted at go.mod
	Tree *source.Tree
}

// Open parses the repository at the root of fsys.
func Open(fsys fs.FS) (*Repo, error) {
	tree, err := source.Parse(fsys)
	if err != nil {
		return nil, err
	}
	return &Repo{FS: fsys, Tree: tree}, nil
}

// Fault is a place where a rule is broken.
type Fault struct {
	Where string // "chapters/06-cacher/dispatch.go:88"
	What  string
}

// String returns the fault as compilers write theirs.
func (f Fault) String() string { return f.Where + ": " + f.What }

// Rule is something that holds all over the repository.
type Rule struct {
	Name  string // as a statement
	Check func(*Repo) []Fault
}

// rules are all rules that need nothing but the sources.
var rules = []Rule{
	{"no import leads up", checkFloors},
	{"upstream lines have the agreed form", checkNotes},
	{"excerpts and links in prose resolve", checkBook},
	{"documents point at what exists", checkDocs},
	{"every reader's shell understands the commands", checkShells},
	{"a moment is one line", checkMoments},
	{"who starts goroutines looks for leaks", checkLeaks},
	{"goroutines of chapters have names", checkNamed},
}

// fault makes a fault at a line of a file.
func fault(path string, line int, format string, args ...any) Fault {
	where := path
	if line > 0 {
		where = fmt.Sprintf("%s:%d", path, line)
	}
	return Fault{Where: where, What: fmt.Sprintf(format, args...)}
}

// chapterNumber returns the number of the chapter a folder belongs to: 6 for "chapters/06-cacher"; 0 if it belongs to
// none.
func chapterNumber(dir string) int {
	rest, ok := strings.CutPrefix(dir, "chapters/")
	if !ok || len(rest) < 3 || rest[2] != '-' {
		return 0
	}
	number := 0
	if _, err := fmt.Sscanf(rest[:2], "%d", &number); err != nil {
		return 0
	}
	return number
}
