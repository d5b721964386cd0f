package policy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"listwatch/internal/observe/probe"
	"listwatch/internal/text/source"
)

// repo is the repository as the rules see it.
type repo struct {
	fs.FS // rooted at go.mod
	*source.Tree
	points map[string]*probe.Info // by name
	lanes  []string               // the names under which goroutines are started
	faults []string               // where a rule is broken, as compilers write it
}

// faultsOf applies all rules to the repository at the root of fsys.
func faultsOf(fsys fs.FS, points map[string]*probe.Info) ([]string, error) {
	tree, err := source.Parse(fsys)
	if err != nil {
		return nil, err
	}
	r := &repo{FS: fsys, Tree: tree, points: points}
	for _, pkg := range tree.Packages {
		r.checkPackage(pkg)
	}
	r.checkReports()
	r.checkPages()
	slices.Sort(r.faults)
	return r.faults, nil
}

func (r *repo) fault(path string, line int, format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf("%s:%d: %s", path, line, fmt.Sprintf(format, args...)))
}

// checkPackage looks at one package: where it stands and what it imports, the form of its Upstream and Differs
// lines (that the upstream symbols exist is checked in internal/check/compat, which has the original at hand), and
// its goroutines. If it starts any, its tests look for those that are left.
func (r *repo) checkPackage(pkg *source.Package) {
	if floorOf(pkg.Dir) < 0 {
		r.fault(pkg.Dir, 0, "stands on no floor; there are %s", strings.Join(floors, ", "))
	}
	for _, note := range pkg.Notes() {
		if note.Err != nil {
			r.fault(note.File.Path, note.Line, "%v", note.Err)
		}
	}
	for _, file := range pkg.Files {
		r.checkImports(pkg, file)
		if pkg.Dir == "viz" && !file.Test {
			r.checkStorey(pkg, file)
		}
		r.checkContexts(file)
		for node := range ast.Preorder(file.AST) {
			if r.startsGoroutine(pkg, file, node) && !file.Test && !r.looksForLeaks(pkg.Dir) {
				r.fault(file.Path, r.Line(node.Pos()),
					"starts a goroutine, and no test looks for those that are left")
			}
		}
	}
}

// checkContexts holds that a test in bubbles takes no context that outlives it: a goroutine that is left in a bubble
// is a panic, which hides what the test has said. An example has no other.
func (r *repo) checkContexts(file *source.File) {
	if !file.Test || strings.HasSuffix(file.Path, "example_test.go") ||
		!slices.ContainsFunc(file.AST.Imports, func(spec *ast.ImportSpec) bool {
			return spec.Path.Value == `"listwatch/internal/check/bubble"`
		}) {
		return
	}
	for node := range ast.Preorder(file.AST) {
		if call, ok := node.(*ast.CallExpr); ok && types.ExprString(call.Fun) == "context.Background" {
			r.fault(file.Path, r.Line(node.Pos()), "context.Background beside bubbles: take t.Context()")
		}
	}
}

func (r *repo) looksForLeaks(dir string) bool {
	return slices.ContainsFunc(r.Packages, func(pkg *source.Package) bool {
		return pkg.Dir == dir && slices.ContainsFunc(pkg.Files, func(file *source.File) bool {
			return file.Test && strings.Contains(string(file.Src), "goleak.VerifyTestMain(")
		})
	})
}

// startsGoroutine tells a go statement and a call of a method Go, and notes the name that the call gives, which is
// the second of three arguments. A chapter has no go statement: a debugger shows the name. Examples may have them,
// because they show what a user of the package writes.
func (r *repo) startsGoroutine(pkg *source.Package, file *source.File, node ast.Node) bool {
	switch node := node.(type) {
	case *ast.GoStmt:
		example := strings.HasSuffix(file.Path, "example_test.go") ||
			strings.HasSuffix(file.Path, "first_try_test.go")
		if chapterNumber(pkg.Dir) > 0 && !example {
			r.fault(file.Path, r.Line(node.Pos()), "a goroutine without a name: start it with routine.Group")
		}
		return true
	case *ast.CallExpr:
		method, ok := node.Fun.(*ast.SelectorExpr)
		if !ok || method.Sel.Name != "Go" {
			return false
		}
		if len(node.Args) == 3 && !file.Test {
			name, _ := strconv.Unquote(types.ExprString(node.Args[1])) // "" for what is no string
			r.lanes = append(r.lanes, name)
		}
		return true
	}
	return false
}

// floors are the rooms of the house from the ground up. A package imports its own floor and those below it;
// docs/ARCHITECTURE.md says what is behind each door. Chapters are floors of their own, by their numbers.
var floors = []string{
	"docs", "internal/kube", "internal/observe", "chapters", "internal/server", "internal/text", "internal/play",
	"viz", "cmd/internal/machine", "cmd", "internal/check",
}

// floorOf returns the floor of a folder, -1 if it stands on none.
func floorOf(dir string) int {
	last := -1
	for i, floor := range floors {
		if strings.HasPrefix(dir+"/", floor+"/") && (last < 0 || len(floor) > len(floors[last])) {
			last = i
		}
	}
	return last
}

// chapterNumber returns the number of the chapter a folder belongs to: 6 for "chapters/06-cacher"; 0 if it belongs
// to none.
func chapterNumber(dir string) (number int) {
	_, _ = fmt.Sscanf(dir, "chapters/%d-", &number)
	return number
}

// checkImports holds that no import leads up: from no floor to a higher one, and from no chapter to itself or a later
// one, nor from a folder to one that it is in. Beside earlier chapters, a chapter imports internal/kube and
// internal/observe only. Tests keep the order of the chapters, too, because who reads chapter 3 has not read chapter 6;
// otherwise they import what they need. Which modules chapters may use, .golangci.yml says.
func (r *repo) checkImports(pkg *source.Package, file *source.File) {
	for _, spec := range file.AST.Imports {
		to, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), "listwatch/")
		from, other, line := chapterNumber(pkg.Dir), chapterNumber(to), r.Line(spec.Pos())
		switch {
		case !ours:
		case from > 0 && other > 0 && (other > from || other == from && !file.Test):
			r.fault(file.Path, line, "imports %s: a chapter imports only chapters with lower numbers", to)
		case from > 0 && !file.Test && other == 0 && !strings.HasPrefix(to, "internal/kube") &&
			!strings.HasPrefix(to, "internal/observe"):
			r.fault(file.Path, line, "imports %s: of ours, a chapter imports internal/kube and internal/observe",
				to)
		case !file.Test && (floorOf(to) > floorOf(pkg.Dir) || strings.HasPrefix(pkg.Dir, to+"/")):
			r.fault(file.Path, line, "imports %s: it is on a higher floor", to)
		}
	}
}

// storeys are the files of package viz from the ground up. A file uses what those below it declare.
var storeys = []string{"doc.go", "guard.go", "assets.go", "pictures.go", "feed.go", "viz.go"}

// checkStorey holds that a file of package viz uses nothing of one above it.
func (r *repo) checkStorey(pkg *source.Package, file *source.File) {
	storey := slices.Index(storeys, path.Base(file.Path))
	if storey < 0 {
		r.fault(file.Path, 0, "is no storey of its package; there are %s", strings.Join(storeys, ", "))
	}
	files := token.NewFileSet()
	parsed, _ := parser.ParseFile(files, file.Path, file.Src, 0) // it has been parsed before
	for _, name := range parsed.Unresolved {
		decl, err := pkg.Find(name.Name, "")
		if err == nil && slices.Index(storeys, path.Base(decl.File.Path)) > storey {
			r.fault(file.Path, files.Position(name.Pos()).Line, "uses %s of %s, which is above it", name.Name,
				path.Base(decl.File.Path))
		}
	}
}
