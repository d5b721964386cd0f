package policy

import (
	"go/ast"
	"io/fs"
	"path"
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
			ast.Inspect(file.AST, func(node ast.Node) bool {
				call, ok := node.(*ast.CallExpr)
				if !ok {
					return true
				}
				if method, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains(skips, method.Sel.Name) {
					faults = append(faults, fault(file.Path, repo.Tree.Line(node.Pos()), "%s: every test runs everywhere", method.Sel.Name))
				}
				return true
			})
		}
	}
	return faults
}

// openEnd finds the usual words for later.
var openEnd = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)

// checkOpenEnds refuses them in chapters: a reader cannot tell what is meant to be missing. Open ends go to the
// README's section on what upstream does more.
func checkOpenEnds(repo *Repo) []Fault {
	var faults []Fault
	err := fs.WalkDir(repo.FS, "chapters", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ext := path.Ext(name); entry.IsDir() || ext != ".go" && ext != ".md" {
			return nil
		}
		text, err := fs.ReadFile(repo.FS, name)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(text), "\n") {
			if word := openEnd.FindString(line); word != "" {
				faults = append(faults, fault(name, i+1, "%s in a chapter", word))
			}
		}
		return nil
	})
	if err != nil {
		faults = append(faults, fault("chapters", 0, "%v", err))
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

// goroutineLine returns a line on which the file starts a goroutine: a go statement, or a method Go of a group. 0: none.
func goroutineLine(repo *Repo, file *source.File) int {
	line := 0
	ast.Inspect(file.AST, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.GoStmt:
			line = repo.Tree.Line(node.Pos())
		case *ast.CallExpr:
			if method, ok := node.Fun.(*ast.SelectorExpr); ok && method.Sel.Name == "Go" {
				line = repo.Tree.Line(node.Pos())
			}
		}
		return line == 0
	})
	return line
}

// mentions reports whether a file uses a name of an imported package.
func mentions(file *source.File, importPath, name string) bool {
	imports := file.Imports()
	found := false
	ast.Inspect(file.AST, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := selector.X.(*ast.Ident)
		found = found || ok && imports[pkg.Name] == importPath && selector.Sel.Name == name
		return true
	})
	return found
}
