package policy

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/types"
	"io/fs"
	"math"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"listwatch/internal/observe/probe"
	"listwatch/internal/text/source"
)

// repo is the repository that the rules check.
type repo struct {
	fs.FS // rooted at go.mod
	*source.Tree
	points map[string]*probe.Info // by name
	lanes  []string               // the names of goroutines that the code starts
	faults []string               // breaches of rules, in the form of compiler errors
}

// faultsOf applies all rules to the repository at the root of fsys and returns the faults.
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

// checkPackage checks one package: its floor and imports, the contexts in its tests, the form of its Upstream and
// Differs lines, and its goroutines. The tests of a package that starts goroutines must check for leaks.
// internal/check/compat, which has upstream's source, checks that the upstream symbols exist.
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
		r.checkContexts(file)
		for node := range ast.Preorder(file.AST) {
			if r.startsGoroutine(pkg, file, node) && !file.Test && !r.looksForLeaks(pkg.Dir) {
				r.fault(file.Path, r.Line(node.Pos()), "starts a goroutine, and no test looks for those that are left")
			}
		}
	}
}

// checkContexts forbids context.Background in tests with bubbles: a goroutine that waits for it never ends, and the
// bubble's panic hides the test's messages. Examples may use it, because they have no other context.
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

// startsGoroutine reports whether node is a go statement or a call of a method Go. It adds the goroutine's name, the
// second of three arguments, to lanes. A chapter may not use go statements, because their goroutines have no names in a
// debugger. Examples may use them, because they show code of the package's users.
func (r *repo) startsGoroutine(pkg *source.Package, file *source.File, node ast.Node) bool {
	switch node := node.(type) {
	case *ast.GoStmt:
		example := strings.HasSuffix(file.Path, "example_test.go") || strings.HasSuffix(file.Path, "first_try_test.go")
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
			name, _ := strconv.Unquote(types.ExprString(node.Args[1])) // "" if it is not a string
			r.lanes = append(r.lanes, name)
		}
		return true
	}
	return false
}

// floors lists folders, the lowest first, as docs/ARCHITECTURE.md describes them. A package may import packages on its
// own floor and on lower ones; each chapter is a floor, by number. [repo.checkImports] has the exceptions.
var floors = []string{
	"docs", "internal/kube", "internal/observe", "chapters", "internal/server", "internal/text", "internal/play",
	"viz", "cmd/internal/machine", "cmd", "internal/check",
}

// floorOf returns the floor of a folder, or -1 if the folder is on none.
func floorOf(dir string) int {
	last := -1
	for i, floor := range floors {
		if strings.HasPrefix(dir+"/", floor+"/") && (last < 0 || len(floor) > len(floors[last])) {
			last = i
		}
	}
	return last
}

// chapterNumber returns the number of a folder's chapter: 6 for "chapters/06-cacher", 0 outside the chapters.
func chapterNumber(dir string) (number int) {
	_, _ = fmt.Sscanf(dir, "chapters/%d-", &number)
	return number
}

// checkImports forbids imports that lead up: to a higher floor, from a chapter to itself or a later chapter, and from a
// folder to a folder that contains it. Apart from earlier chapters, a chapter may import only internal/kube and
// internal/observe. A chapter's tests may not import later chapters either, because a reader of chapter 3 has not read
// chapter 6. Tests may import all else. .golangci.yml lists the modules that chapters may use.
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
			r.fault(file.Path, line, "imports %s: of ours, a chapter imports internal/kube and internal/observe", to)
		case !file.Test && (floorOf(to) > floorOf(pkg.Dir) || strings.HasPrefix(pkg.Dir, to+"/")):
			r.fault(file.Path, line, "imports %s: it is on a higher floor", to)
		}
	}
}

// lanesWithoutRoutine lists points' lanes that no routine.Group starts: net/http starts a goroutine for each request.
var lanesWithoutRoutine = []string{"handlers.WatchServer"}

// checkReports requires that the program reports each declared point, except a Look, in exactly one place, in the
// form that checkReport requires. The point's lane must be a goroutine.
func (r *repo) checkReports() {
	places := make(map[string][]source.Mention)
	for _, mention := range r.Mentions(func(name string) bool { return r.points[name] != nil }) {
		switch {
		case !reports(mention.Package.Dir):
		case mention.Method == "":
			r.fault(mention.File.Path, mention.Line, "%s is mentioned, not reported", mention.Point)
		default:
			places[mention.Point] = append(places[mention.Point], mention)
			r.checkReport(mention, r.points[mention.Point])
		}
	}
	for name, info := range r.points {
		if info.Op == probe.Look {
			continue // package probe itself reports this point
		}
		if n := len(places[name]); n == 0 {
			r.fault(declarations, r.declared(name), "%s is reported nowhere", name)
		} else if n > 1 {
			for _, mention := range places[name] {
				r.fault(mention.File.Path, mention.Line, "%s is reported from %d lines, not from one", name, n)
			}
		}
		for _, lane := range info.Lanes() {
			if !slices.Contains(r.lanes, lane) && !slices.Contains(lanesWithoutRoutine, lane) {
				r.fault(declarations, r.declared(name),
					"%s names the lane %s, but no goroutine of that name is started", name, lane)
			}
		}
	}
}

const declarations = "internal/observe/probe/points.go"

// declared returns the line number of a point's declaration.
func (r *repo) declared(name string) int {
	text, _ := fs.ReadFile(r, declarations) // "" gives line 1
	before, _, _ := strings.Cut(string(text), fmt.Sprintf("{Name: %q,", name))
	return 1 + strings.Count(before, "\n")
}

// reports reports whether a folder's code may report points: the chapters', the commands' and the sandbox's may.
func reports(dir string) bool {
	return chapterNumber(dir) > 0 || strings.HasPrefix(dir, "cmd/") || dir == "internal/play/sandbox"
}

// fixedArgs holds, by method, the number of arguments before the point's own arguments.
var fixedArgs = map[string]int{"At": 3, "Event": 4, "Text": 4, "Texts": 4}

// checkReport compares a report's args, method and lock with the point's declaration, and requires its own line.
func (r *repo) checkReport(mention source.Mention, info *probe.Info) {
	complain := func(format string, args ...any) {
		r.fault(mention.File.Path, mention.Line, mention.Point+" "+format, args...)
	}
	call := mention.Node.(*ast.CallExpr)
	args := len(call.Args) - fixedArgs[mention.Method]
	if want := len(info.Args.List()); call.Ellipsis.IsValid() || args != want {
		complain("is reported with %d args, declared are %d: %q", args, want, info.Args)
	}
	if !ownLine(mention) {
		complain("does not stand on its own line")
	}
	if strings.Contains(info.Says, "{type}") && mention.Method != "Event" {
		complain("says {type} and is reported by %s, which has none", mention.Method)
	}
	want := map[int]string{0: "At Event", 1: "Text"}
	if methods := cmp.Or(want[len(info.Texts.List())], "Texts"); !slices.Contains(strings.Fields(methods),
		mention.Method) {
		complain("has the texts %q and is reported by %s", info.Texts, mention.Method)
	}
	locked := mention.In != nil && holdsLock(mention)
	if info.Locked && !locked {
		complain("is declared Locked, but %s holds no lock there", mention.Function)
	}
	if !info.Locked && locked {
		complain("is not declared Locked, but %s holds a lock there: the world must not be held at it",
			mention.Function)
	}
}

// ownLine reports whether a report has its lines to itself. An assignment of the report's number may come before it,
// and a comment after it.
func ownLine(mention source.Mention) bool {
	file, call := mention.File, mention.Node
	lines := file.Lines(call.Pos(), call.End())
	code := string(file.Src[call.Pos()-file.AST.FileStart : call.End()-file.AST.FileStart])
	before, after, _ := strings.Cut(lines, code)
	after = strings.TrimSpace(after)
	return named.MatchString(before) && (after == "" || strings.HasPrefix(after, "//"))
}

var named = regexp.MustCompile(`^\s*(\w+ := )?$`)

var (
	lockCall   = regexp.MustCompile(`\.(R?Lock|lock)\(\)$`)
	unlockCall = regexp.MustCompile(`^[\w.]+\.R?Unlock\(\)$`)
)

// holdsLock derives from a function's text whether the function holds a lock at a report. It does if its name ends in
// Locked, or if the last line that locks or unlocks, before the report, takes a lock. Lines that are indented deeper
// than later lines do not count, because they are in another branch. A deferred Unlock keeps the lock until the end. A
// function literal does not have the locks of the code around it.
//
// This is a heuristic. It is exact for code that keeps to the house rules, where a lock is held for a whole function or
// for a straight run of lines.
func holdsLock(mention source.Mention) bool {
	if strings.HasSuffix(mention.In.Name.Name, "Locked") {
		return true
	}
	before := strings.Split(mention.File.Lines(mention.In.Pos(), mention.Node.Pos()), "\n")
	depth := math.MaxInt
	for _, line := range slices.Backward(before) {
		code := strings.TrimLeft(line, "\t")
		if code == "" || len(line)-len(code) > depth {
			continue
		}
		depth = len(line) - len(code)
		switch {
		case strings.HasSuffix(code, "{") && strings.Contains(code, "func("), unlockCall.MatchString(code):
			return false
		case lockCall.MatchString(code):
			return true
		}
	}
	return false
}

var (
	// docTarget matches the destination of a Markdown link without a title.
	docTarget = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// docMethod matches a method in a debugger's form: cacher.(*Cacher).dispatchEvent.
	docMethod = regexp.MustCompile(`\b([a-z][a-z0-9]*)\.\(\*([A-Za-z]\w*)\)\.([A-Za-z]\w*)`)
	// docTest matches a test's name in backquotes.
	docTest = regexp.MustCompile("`(Test[A-Z][A-Za-z]+)`")
	// docSymbol matches a link to a symbol: [Cacher.dispatchEvent](../chapters/06-cacher/dispatch.go).
	docSymbol = regexp.MustCompile(`\[([A-Za-z]\w*(?:\.[A-Za-z]\w*)?)\]\(([^)\s]+/\w+\.(?:go|js))\)`)
)

// checkPages checks the README, the docs and the chapters. Linked files must exist and declare the symbols that the
// links name. Named tests, and methods in a debugger's form, must exist. internal/text/book checks other links.
func (r *repo) checkPages() {
	for _, pattern := range []string{"README.md", "docs/*.md", "chapters/*/README.md"} {
		names, _ := fs.Glob(r, pattern) // the patterns are well formed
		for _, name := range names {
			text, _ := fs.ReadFile(r, name) // Glob has just listed it
			for i, line := range strings.Split(string(text), "\n") {
				complain := func(format string, args ...any) { r.fault(name, i+1, format, args...) }
				r.checkLine(path.Dir(name), line, complain)
			}
		}
	}
}

// checkLine checks a line of a page in the folder dir: its links and names, and that it has no second command.
func (r *repo) checkLine(dir, line string, complain func(string, ...any)) {
	if strings.HasPrefix(line, "$ ") && strings.Contains(line, " $ ") {
		complain("two commands in a line: each begins a line of its own")
	}
	for _, match := range docTarget.FindAllStringSubmatch(line, -1) {
		target, err := url.Parse(match[1])
		if err != nil {
			complain("%v", err)
		} else if target.Scheme == "" && target.Path != "" && !path.IsAbs(target.Path) {
			if _, err := fs.Stat(r, path.Join(dir, target.Path)); err != nil {
				complain("%s does not exist", match[1])
			}
		}
	}
	for _, match := range docSymbol.FindAllStringSubmatch(line, -1) {
		symbol, file := match[1], path.Join(dir, match[2])
		if err := r.declares(file, symbol); err != nil && symbol != path.Base(file) {
			complain("%v", err)
		}
	}
	for _, match := range docTest.FindAllStringSubmatch(line, -1) {
		if !r.hasTest(match[1]) {
			complain("%s does not exist", match[1])
		}
	}
	for _, match := range docMethod.FindAllStringSubmatch(line, -1) {
		named := func(pkg *source.Package) bool { return pkg.Name == match[1] }
		declares := func(pkg *source.Package) bool { return named(pkg) && declared(pkg, match[2], match[3]) }
		if slices.ContainsFunc(r.Packages, named) && !slices.ContainsFunc(r.Packages, declares) {
			complain("%s does not exist", match[0])
		}
	}
}

// declares returns an error if a Go file or a script does not declare a symbol. It returns nil for a missing script,
// because another rule finds missing files.
func (r *repo) declares(file, symbol string) error {
	if pkg := r.Holding(file); pkg != nil {
		_, err := pkg.Find(symbol, path.Base(file))
		return err
	}
	owner, member, _ := strings.Cut(symbol, ".")
	text, err := fs.ReadFile(r, file)
	declares := regexp.MustCompile(`(?m)^ *(?:export )?(?:async )?(?:function\*?|class|const|let) ` + owner + `\b`)
	has := regexp.MustCompile(`(?m)^  (?:async |get )?` + member + `\(.*\{`)
	if err == nil && (!declares.Match(text) || member != "" && !has.Match(text)) {
		return fmt.Errorf("%s is not declared in %s", symbol, file)
	}
	return nil
}

// hasTest reports whether a test exists in this module or in internal/check/compat, which is another module.
func (r *repo) hasTest(name string) bool {
	others, _ := fs.Glob(r, "internal/check/compat/*/*_test.go") // the pattern is well formed
	return slices.ContainsFunc(r.Packages, func(pkg *source.Package) bool {
		_, err := pkg.Find(name, "")
		return err == nil
	}) || slices.ContainsFunc(others, func(file string) bool {
		text, _ := fs.ReadFile(r, file) // Glob has just listed it
		return strings.Contains(string(text), "\nfunc "+name+"(")
	})
}

// declared reports whether a type of a package has a member, of its own or through an embedded type.
func declared(pkg *source.Package, owner, member string) bool {
	_, err := pkg.Find(owner+"."+member, "")
	return err == nil || slices.ContainsFunc(pkg.Decls, func(decl *source.Decl) bool {
		embedded, ok := strings.CutPrefix(decl.Symbol, owner+".")
		return ok && embedded != owner && embedded != member && declared(pkg, embedded, member)
	})
}
