package policy

import (
	"go/ast"
	"slices"
	"strings"

	"listwatch/internal/text/source"
)

// checkLeaks wants goleak.VerifyTestMain in the tests of every package that starts goroutines.
func checkLeaks(repo *Repo) []Fault {
	starts := make(map[string]string) // folder → where a goroutine starts
	guarded := make(map[string]bool)  // folder
	for _, pkg := range repo.Tree.Packages {
		for _, file := range pkg.Files {
			if file.Test && strings.Contains(string(file.Src), "goleak.VerifyTestMain(") {
				guarded[pkg.Dir] = true
			}
			if line := goroutineLine(repo, file, true); line > 0 && !file.Test && starts[pkg.Dir] == "" {
				starts[pkg.Dir] = fault(file.Path, line, "").Where
			}
		}
	}
	var faults []Fault
	for dir, where := range starts {
		if !guarded[dir] {
			faults = append(faults, Fault{where, "starts a goroutine, and no test of the package calls " +
				"goleak.VerifyTestMain"})
		}
	}
	slices.SortFunc(faults, func(a, b Fault) int { return strings.Compare(a.Where, b.Where) })
	return faults
}

// checkNamed wants no go statement in a chapter: a debugger shows the name that routine.Group gives. Examples may have
// them, because they show what a user of the package writes.
func checkNamed(repo *Repo) []Fault {
	var faults []Fault
	for _, pkg := range repo.Tree.Packages {
		for _, file := range pkg.Files {
			example := strings.HasSuffix(file.Path, "example_test.go") || strings.HasSuffix(file.Path,
				"first_try_test.go")
			if chapterNumber(pkg.Dir) == 0 || example {
				continue
			}
			if line := goroutineLine(repo, file, false); line > 0 {
				faults = append(faults, fault(file.Path, line, "a goroutine without a name: start it with "+
					"routine.Group"))
			}
		}
	}
	return faults
}

// goroutineLine returns the first line on which the file has a go statement or, if groups count, calls a method Go. 0:
// none.
func goroutineLine(repo *Repo, file *source.File, groups bool) int {
	for node := range ast.Preorder(file.AST) {
		if _, ok := node.(*ast.GoStmt); ok {
			return repo.Tree.Line(node.Pos())
		}
		if call, ok := node.(*ast.CallExpr); ok && groups {
			if method, ok := call.Fun.(*ast.SelectorExpr); ok && method.Sel.Name == "Go" {
				return repo.Tree.Line(node.Pos())
			}
		}
	}
	return 0
}
