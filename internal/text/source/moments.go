package source

import (
	"bytes"
	"cmp"
	"go/ast"
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
			if !file.Test {
				all = append(all, t.momentsIn(pkg, file, isPoint)...)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Moment) int { return cmp.Compare(a.Point, b.Point) })
	return all
}

// momentsIn walks one file. A point that is the first argument of At, Event or Text is a report; the walk does not
// come to it a second time as a mere mention.
func (t *Tree) momentsIn(pkg *Package, file *File, isPoint func(string) bool) []Moment {
	var all []Moment
	reported := make(map[ast.Node]bool) // points that were taken care of as part of a call
	imports := file.Imports()
	point := func(node ast.Node) string { // X if node is probe.X and X is a point
		if selector, ok := node.(*ast.SelectorExpr); ok {
			pkg, ok := selector.X.(*ast.Ident)
			if ok && imports[pkg.Name] == ProbePath && isPoint(selector.Sel.Name) {
				return selector.Sel.Name
			}
		}
		return ""
	}
	for _, decl := range file.AST.Decls {
		fn, _ := decl.(*ast.FuncDecl)
		for node := range ast.Preorder(decl) {
			moment := Moment{Point: point(node), Package: pkg, File: file}
			if call, ok := node.(*ast.CallExpr); ok && len(call.Args) > 0 {
				method, _ := call.Fun.(*ast.SelectorExpr)
				if method != nil && fixedArgs[method.Sel.Name] > 0 {
					moment.Point, moment.Method = point(call.Args[0]), method.Sel.Name
					moment.Args, moment.Spread = len(call.Args)-fixedArgs[moment.Method], call.Ellipsis.IsValid()
					reported[call.Args[0]] = true
				}
			}
			if moment.Point == "" || reported[node] {
				continue
			}
			moment.Line, moment.OwnLine = t.Line(node.Pos()), t.ownLine(file, node)
			if fn != nil {
				moment.Function, moment.Locked = funcSymbol(fn), t.holdsLock(file, fn, node.Pos())
			}
			all = append(all, moment)
		}
	}
	return all
}

// ownLine reports whether node has its line or lines to itself, but for a comment behind it.
func (t *Tree) ownLine(file *File, node ast.Node) bool {
	before := bytes.TrimSpace(file.Src[t.lineStart(file, node.Pos()):t.offset(node.Pos())])
	after := bytes.TrimSpace(file.Src[t.offset(node.End()):t.lineEnd(file, node.End())])
	return len(before) == 0 && (len(after) == 0 || bytes.HasPrefix(after, []byte("//")))
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
	literal, constant := call.Args[1].(*ast.BasicLit)
	if !ok || !constant || method.Sel.Name != "Go" {
		return ""
	}
	name, _ := strconv.Unquote(literal.Value) // "" for what is no string
	return name
}
