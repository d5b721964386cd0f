package policy

import (
	"go/ast"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"listwatch/internal/source"
)

// checkSkips refuses tests that do not run.
func checkSkips(repo *Repo) []Fault {
	skips := []string{"Skip", "Skipf", "SkipNow", "Short"}
	var faults []Fault
	for _, pkg := range repo.Tree.Packages {
		for _, file := range pkg.Files {
			if !file.Test {
				continue
			}
			for node := range ast.Preorder(file.AST) {
				call, ok := node.(*ast.CallExpr)
				if !ok {
					continue
				}
				if method, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains(skips, method.Sel.Name) {
					faults = append(faults, fault(file.Path, repo.Tree.Line(node.Pos()), "%s: every test runs everywhere", method.Sel.Name))
				}
			}
		}
	}
	return faults
}

// insteads are calls that look right and now and then are not, each with the package of ours that makes up for it.
var insteads = map[string]struct{ in, why string }{
	"Test":                   {"internal/bubble", "bubble.Test gives the race detector one processor"},
	"CloseClientConnections": {"internal/eventually", "eventually.Closes also cuts a client that comes back at once"},
}

// checkInsteads refuses those calls elsewhere: they crash race builds, or hang, once in many runs.
func checkInsteads(repo *Repo) []Fault {
	var faults []Fault
	for _, pkg := range repo.Tree.Packages {
		for _, file := range pkg.Files {
			for node := range ast.Preorder(file.AST) {
				method, ok := node.(*ast.SelectorExpr)
				if !ok {
					continue
				}
				instead, known := insteads[method.Sel.Name]
				of, named := method.X.(*ast.Ident)
				if known && named && pkg.Dir != instead.in && (method.Sel.Name != "Test" || of.Name == "synctest") {
					faults = append(faults, fault(file.Path, repo.Tree.Line(node.Pos()), "%s.%s: %s", of.Name, method.Sel.Name, instead.why))
				}
			}
		}
	}
	return faults
}

// openEnd finds the usual words for later.
var openEnd = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)

// checkOpenEnds refuses them in chapters: a reader cannot tell what is meant to be missing. Open ends go to the
// README's section on what upstream does more.
func checkOpenEnds(repo *Repo) []Fault {
	var names []string
	for _, pattern := range []string{"chapters/*.go", "chapters/*/*.go", "chapters/*/*.md"} {
		found, err := fs.Glob(repo.FS, pattern)
		if err != nil {
			return []Fault{fault(pattern, 0, "%v", err)}
		}
		names = append(names, found...)
	}
	var faults []Fault
	for _, name := range names {
		faults = append(faults, openEndsIn(repo, name)...)
	}
	return faults
}

func openEndsIn(repo *Repo, name string) []Fault {
	text, err := fs.ReadFile(repo.FS, name)
	if err != nil {
		return []Fault{fault(name, 0, "%v", err)}
	}
	var faults []Fault
	for i, line := range strings.Split(string(text), "\n") {
		if word := openEnd.FindString(line); word != "" {
			faults = append(faults, fault(name, i+1, "%s in a chapter", word))
		}
	}
	return faults
}

// checkLeaks wants goleak.VerifyTestMain in the tests of every package that starts goroutines.
func checkLeaks(repo *Repo) []Fault {
	starts := make(map[string]string) // folder → where a goroutine starts
	guarded := make(map[string]bool)  // folder
	for _, pkg := range repo.Tree.Packages {
		for _, file := range pkg.Files {
			if file.Test && mentions(file, "go.uber.org/goleak", "VerifyTestMain") {
				guarded[pkg.Dir] = true
			}
			if line := goroutineLine(repo, file); line > 0 && !file.Test && starts[pkg.Dir] == "" {
				starts[pkg.Dir] = fault(file.Path, line, "").Where
			}
		}
	}
	var faults []Fault
	for dir, where := range starts {
		if !guarded[dir] {
			faults = append(faults, Fault{where, "starts a goroutine, and no test of the package calls goleak.VerifyTestMain"})
		}
	}
	slices.SortFunc(faults, func(a, b Fault) int { return strings.Compare(a.Where, b.Where) })
	return faults
}

// checkNamed wants no go statement in a chapter: a debugger shows the name that routine.Group gives. Examples are free, because they
// show what a user of the package writes.
func checkNamed(repo *Repo) []Fault {
	var faults []Fault
	for _, pkg := range repo.Tree.Packages {
		if chapterNumber(pkg.Dir) == 0 {
			continue
		}
		for _, file := range pkg.Files {
			for node := range ast.Preorder(file.AST) {
				if _, ok := node.(*ast.GoStmt); ok && !strings.HasSuffix(file.Path, "example_test.go") {
					faults = append(faults, fault(file.Path, repo.Tree.Line(node.Pos()), "a goroutine without a name: start it with routine.Group"))
				}
			}
		}
	}
	return faults
}

// goroutineLine returns a line on which the file starts a goroutine: a go statement, or a method Go of a group. 0: none.
func goroutineLine(repo *Repo, file *source.File) int {
	for node := range ast.Preorder(file.AST) {
		switch node := node.(type) {
		case *ast.GoStmt:
			return repo.Tree.Line(node.Pos())
		case *ast.CallExpr:
			if method, ok := node.Fun.(*ast.SelectorExpr); ok && method.Sel.Name == "Go" {
				return repo.Tree.Line(node.Pos())
			}
		}
	}
	return 0
}

// mentions reports whether a file uses a name of an imported package.
func mentions(file *source.File, importPath, name string) bool {
	imports := file.Imports()
	for node := range ast.Preorder(file.AST) {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok || selector.Sel.Name != name {
			continue
		}
		if pkg, ok := selector.X.(*ast.Ident); ok && imports[pkg.Name] == importPath {
			return true
		}
	}
	return false
}
