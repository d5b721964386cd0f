package policy

import (
	"cmp"
	"fmt"
	"go/ast"
	"io/fs"
	"math"
	"regexp"
	"slices"
	"strings"

	"listwatch/internal/observe/probe"
	"listwatch/internal/text/source"
)

// lanesWithoutRoutine are goroutines that a point names as its lane and that are not started by a routine.Group:
// the HTTP server starts one for each request.
var lanesWithoutRoutine = []string{"handlers.WatchServer"}

// checkReports holds that a declared point is exactly one line of the program, on its own, with the declared args,
// by the method its sentence needs, under a lock if and only if it is declared so; and that its lane is a
// goroutine.
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
		if info.Op == probe.Sum {
			continue // reported by probe itself, of what no station reports
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

// declared returns the line on which a point is declared.
func (r *repo) declared(name string) int {
	text, _ := fs.ReadFile(r, declarations) // "": then the line says so
	before, _, _ := strings.Cut(string(text), fmt.Sprintf("{Name: %q,", name))
	return 1 + strings.Count(before, "\n")
}

// reports tells whether a folder's code runs in the program and reports moments: stations do, and what serves them,
// and what acts on them.
func reports(dir string) bool {
	return chapterNumber(dir) > 0 || strings.HasPrefix(dir, "cmd/") || dir == "internal/play/sandbox"
}

// fixedArgs is how many arguments each method takes before those that the point declares.
var fixedArgs = map[string]int{"At": 3, "Event": 4, "Text": 4, "Texts": 4}

// checkReport looks at one report.
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

// ownLine reports whether a report has its line or lines to itself, but for a comment behind it.
func ownLine(mention source.Mention) bool {
	file, call := mention.File, mention.Node
	lines := file.Lines(call.Pos(), call.End())
	code := string(file.Src[call.Pos()-file.AST.FileStart : call.End()-file.AST.FileStart])
	before, after, _ := strings.Cut(lines, code)
	after = strings.TrimSpace(after)
	return strings.TrimSpace(before) == "" && (after == "" || strings.HasPrefix(after, "//"))
}

var (
	lockCall   = regexp.MustCompile(`\.(R?Lock|lock)\(\)$`)
	unlockCall = regexp.MustCompile(`^[\w.]+\.R?Unlock\(\)$`)
)

// holdsLock tells from the text of a function alone whether a lock is held at a report in it: its name ends in
// Locked, or the last line before that takes or gives back a lock takes one. Only lines count that are indented no
// deeper than those behind them: what stands deeper is in another branch. A deferred Unlock gives back nothing
// before the end, and what is around a function literal is not its own.
//
// This is reading, not proof. It is exact for code that keeps to the house rules, where a lock is held for a whole
// function or for a straight run of lines.
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
