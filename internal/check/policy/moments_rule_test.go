package policy

import (
	"go/ast"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"listwatch/internal/observe/probe"
	"listwatch/internal/text/source"
)

// lanesWithoutRoutine are goroutines that a point names as its lane and that are not started by a routine.Group:
// the HTTP server starts one for each request.
var lanesWithoutRoutine = []string{"handlers.WatchServer"}

// checkMoments holds that a declared point is exactly one line of the program, on its own, with the declared args, by
// the method its sentence needs, under a lock if and only if it is declared so.
func checkMoments(repo *Repo) []Fault {
	infos := make(map[string]*probe.Info)
	for _, point := range probe.Points() {
		infos[point.String()] = point.Info()
	}
	return momentFaults(repo, infos)
}

func momentFaults(repo *Repo, infos map[string]*probe.Info) []Fault {
	moments := repo.Tree.Moments(func(name string) bool { return infos[name] != nil })
	places := make(map[string][]source.Moment)
	var faults []Fault
	for _, moment := range moments {
		if !product(moment.Package.Dir) {
			continue
		}
		if moment.Method == "" {
			faults = append(faults, fault(moment.File.Path, moment.Line, "%s is mentioned, not reported: a point is "+
				"a source line", moment.Point))
			continue
		}
		places[moment.Point] = append(places[moment.Point], moment)
		faults = append(faults, momentFault(repo.Tree, moment, infos[moment.Point])...)
	}
	routines := append(routines(repo.Tree), lanesWithoutRoutine...)
	for name, info := range infos {
		if info.Op == probe.Sum {
			continue // reported by probe itself, of what no station reports
		}
		if n := len(places[name]); n == 0 {
			faults = append(faults, fault("internal/observe/probe/points.go", 0, "%s is reported nowhere", name))
		} else if n > 1 {
			for _, moment := range places[name] {
				faults = append(faults, fault(moment.File.Path, moment.Line,
					"%s is reported from %d lines, not from one", name, n))
			}
		}
		for _, lane := range info.Lanes() {
			if !slices.Contains(routines, lane) {
				faults = append(faults, fault("internal/observe/probe/points.go", 0, "%s names the lane %s, but no "+
					"goroutine of that name is started", name, lane))
			}
		}
	}
	slices.SortFunc(faults, func(a, b Fault) int { return strings.Compare(a.String(), b.String()) })
	return faults
}

// product reports whether a folder's code runs in the program and reports moments: stations do, and what serves them,
// and what acts on them.
func product(dir string) bool {
	return chapterNumber(dir) > 0 || strings.HasPrefix(dir, "cmd/") || dir == "internal/play/sandbox" ||
		dir == "cmd/internal/machine"
}

// fixedArgs is how many arguments each method takes before those that the point declares.
var fixedArgs = map[string]int{"At": 3, "Event": 4, "Text": 4}

// momentFault returns what is wrong with one report.
func momentFault(tree *source.Tree, moment source.Moment, info *probe.Info) []Fault {
	var faults []Fault
	complain := func(format string, args ...any) {
		faults = append(faults, fault(moment.File.Path, moment.Line, moment.Point+" "+format, args...))
	}
	call := moment.Node.(*ast.CallExpr)
	args := len(call.Args) - fixedArgs[moment.Method]
	if want := len(info.ArgNames()); call.Ellipsis.IsValid() || args != want {
		complain("is reported with %d args, declared are %d: %q", args, want, info.Args)
	}
	if !ownLine(tree, moment) {
		complain("does not stand on its own line")
	}
	if strings.Contains(info.Says, "{type}") && moment.Method != "Event" {
		complain("says {type} and is reported by %s, which has none", moment.Method)
	}
	if strings.Contains(info.Says, "{text}") && moment.Method != "Text" {
		complain("says {text} and is reported by %s, which has none", moment.Method)
	}
	locked := moment.In != nil && holdsLock(tree, moment)
	if info.Locked && !locked {
		complain("is declared Locked, but %s holds no lock there", moment.Function)
	}
	if !info.Locked && locked {
		complain("is not declared Locked, but %s holds a lock there: the world must not be held at it", moment.Function)
	}
	return faults
}

// ownLine reports whether a report has its line or lines to itself, but for a comment behind it.
func ownLine(tree *source.Tree, moment source.Moment) bool {
	file, call := moment.File, moment.Node
	lines := tree.Lines(file, call.Pos(), call.End())
	code := string(file.Src[call.Pos()-file.AST.FileStart : call.End()-file.AST.FileStart])
	before, after, _ := strings.Cut(lines, code)
	after = strings.TrimSpace(after)
	return strings.TrimSpace(before) == "" && (after == "" || strings.HasPrefix(after, "//"))
}

var (
	lockCall   = regexp.MustCompile(`\.(R?Lock|lock)\(\)$`)
	unlockCall = regexp.MustCompile(`^[\w.]+\.R?Unlock\(\)$`)
)

// holdsLock tells from the text of a function alone whether a lock is held at a report in it: its name ends in Locked,
// or the last line before that takes or gives back a lock takes one. Only lines count that are indented no deeper than
// those behind them: what stands deeper is in another branch. A deferred Unlock gives back nothing before the end, and
// what is around a function literal is not its own.
//
// This is reading, not proof. It is exact for code that keeps to the house rules, where a lock is held for a whole
// function or for a straight run of lines.
func holdsLock(tree *source.Tree, moment source.Moment) bool {
	if strings.HasSuffix(moment.In.Name.Name, "Locked") {
		return true
	}
	before := strings.Split(tree.Lines(moment.File, moment.In.Pos(), moment.Node.Pos()), "\n")
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

// routines returns the names under which goroutines are started: the constant second argument of every call of a
// method named Go with three arguments.
func routines(tree *source.Tree) []string {
	var names []string
	for _, pkg := range tree.Packages {
		for _, file := range pkg.Files {
			if file.Test {
				continue
			}
			for node := range ast.Preorder(file.AST) {
				if name := routineName(node); name != "" {
					names = append(names, name)
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func routineName(node ast.Node) string {
	call, ok := node.(*ast.CallExpr)
	if !ok || len(call.Args) != 3 {
		return ""
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	literal, constant := call.Args[1].(*ast.BasicLit)
	if !ok || !constant || method.Sel.Name != "Go" {
		return ""
	}
	name, _ := strconv.Unquote(literal.Value) // "" for what is no string
	return name
}
