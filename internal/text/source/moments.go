package source

import (
	"cmp"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
)

// ProbePath is the import path of the package in which points are declared.
const ProbePath = "listwatch/internal/observe/probe"

// Moment is a place at which a probe point is reported:
//
//	w.probe.At(probe.RingAppend, event.Key, event.ResourceVersion, start, end, capacity, oldest)
type Moment struct {
	Point    string // "RingAppend"
	Method   string // "At", "Event" or "Text"; "" if the point is mentioned in any other way
	Args     int    // how many values follow point, type or text, key and resource version
	Spread   bool   // the last one is a slice...
	OwnLine  bool   // nothing else is on the line
	Locked   bool   // a lock is held there, as far as the function itself shows; see [holdsLock]
	Package  *Package
	File     *File
	Line     int
	Function string // "WatchCache.updateCacheLocked"
}

// fixedArgs is how many arguments each method takes before those that the point declares.
var fixedArgs = map[string]int{"At": 3, "Event": 4, "Text": 4}

// Moments returns every mention of a name for which isPoint is true, qualified by the probe package, in the files of
// the tree that are not tests, sorted by point.
func (t *Tree) Moments(isPoint func(name string) bool) []Moment {
	var all []Moment
	for _, pkg := range t.Packages {
		for _, file := range pkg.Files {
			if file.Test || !slices.Contains(importPaths(file), ProbePath) {
				continue
			}
			all = append(all, t.momentsIn(pkg, file, isPoint)...)
		}
	}
	slices.SortStableFunc(all, func(a, b Moment) int { return cmp.Compare(a.Point, b.Point) })
	return all
}

func importPaths(file *File) []string {
	var paths []string
	for _, path := range file.Imports() {
		paths = append(paths, path)
	}
	return paths
}

// momentsIn walks one file. A point that is the first argument of At, Event or Text is a report; the walk does not
// come to it a second time as a mere mention.
func (t *Tree) momentsIn(pkg *Package, file *File, isPoint func(string) bool) []Moment {
	var all []Moment
	var seen []ast.Node // selectors that were taken care of as part of a call
	imports := file.Imports()
	for _, decl := range file.AST.Decls {
		fn, _ := decl.(*ast.FuncDecl)
		for node := range ast.Preorder(decl) {
			moment, selector := t.moment(node, imports, isPoint)
			if selector == nil || slices.Contains(seen, selector) {
				continue
			}
			seen = append(seen, selector)
			moment.Package, moment.File, moment.Line = pkg, file, t.Line(node.Pos())
			if fn != nil {
				moment.Function = funcSymbol(fn)
				moment.Locked = holdsLock(fn, node.Pos())
			}
			moment.OwnLine = t.ownLine(file, node)
			all = append(all, moment)
		}
	}
	return all
}

// moment recognizes a report or a mention. The selector it returns is the qualified point, nil if node is neither.
func (t *Tree) moment(node ast.Node, imports map[string]string, isPoint func(string) bool) (Moment, ast.Node) {
	if call, ok := node.(*ast.CallExpr); ok && len(call.Args) > 0 {
		method, ok := call.Fun.(*ast.SelectorExpr)
		point := pointName(call.Args[0], imports, isPoint)
		if !ok || point == "" || fixedArgs[method.Sel.Name] == 0 {
			return Moment{}, nil
		}
		moment := Moment{Point: point, Method: method.Sel.Name, Spread: call.Ellipsis.IsValid()}
		moment.Args = len(call.Args) - fixedArgs[moment.Method]
		return moment, call.Args[0]
	}
	if expr, ok := node.(ast.Expr); ok {
		if point := pointName(expr, imports, isPoint); point != "" {
			return Moment{Point: point}, node
		}
	}
	return Moment{}, nil
}

// pointName returns X if expr is probe.X and X is a point.
func pointName(expr ast.Expr, imports map[string]string, isPoint func(string) bool) string {
	selector, ok := expr.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	pkg, ok := selector.X.(*ast.Ident)
	if !ok || imports[pkg.Name] != ProbePath || !isPoint(selector.Sel.Name) {
		return ""
	}
	return selector.Sel.Name
}

// ownLine reports whether node has its line or lines to itself, but for a comment behind it.
func (t *Tree) ownLine(file *File, node ast.Node) bool {
	before := file.Src[t.lineStart(file, node.Pos()):t.offset(node.Pos())]
	after := file.Src[t.offset(node.End()):t.lineEnd(file, node.End())]
	return blank(before) && (blank(after) || isComment(after))
}

func blank(text []byte) bool {
	for _, c := range text {
		if c != ' ' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

func isComment(text []byte) bool {
	for len(text) > 0 && (text[0] == ' ' || text[0] == '\t') {
		text = text[1:]
	}
	return len(text) > 1 && text[0] == '/' && text[1] == '/'
}

// Routines returns the names under which goroutines are started: the constant second argument of every call of a
// method named Go with three arguments.
func (t *Tree) Routines() []string {
	var names []string
	for _, pkg := range t.Packages {
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
	if !ok || method.Sel.Name != "Go" {
		return ""
	}
	literal, ok := call.Args[1].(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	name, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return name
}
