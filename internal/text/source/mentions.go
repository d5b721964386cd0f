package source

import (
	"cmp"
	"go/ast"
	"path"
	"slices"
	"strconv"
)

// ProbePath is the import path of the package in which points are declared.
const ProbePath = "listwatch/internal/observe/probe"

// Mention is a place at which a probe point is reported:
//
//	w.probe.At(probe.RingAppend, event.Key, event.ResourceVersion, start, end, capacity, oldest)
type Mention struct {
	Point    string // "RingAppend"
	Method   string // "At", "Event", "Text" or "Texts"; "" if the point is mentioned in any other way
	Package  *Package
	File     *File
	Line     int
	Node     ast.Node      // the call; or, of a mention, the name
	In       *ast.FuncDecl // nil: outside of any function
	Function string        // "WatchCache.updateCacheLocked"
}

// reports are the methods that report a point, their first argument.
var reports = []string{"At", "Event", "Text", "Texts"}

// Mentions returns every mention of a name for which isPoint is true, qualified by the probe package, in the files of
// the tree that are not tests, sorted by point.
func (t *Tree) Mentions(isPoint func(name string) bool) []Mention {
	var all []Mention
	for _, pkg := range t.Packages {
		for _, file := range pkg.Files {
			if !file.Test {
				all = append(all, t.mentionsIn(pkg, file, isPoint)...)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Mention) int { return cmp.Compare(a.Point, b.Point) })
	return all
}

// mentionsIn walks one file. A point that is the first argument of At, Event or Text is a report; the walk does not
// come to it a second time as a mere mention.
func (t *Tree) mentionsIn(pkg *Package, file *File, isPoint func(string) bool) []Mention {
	var all []Mention
	reported := make(map[ast.Node]bool) // points that were taken care of as part of a call
	probe := ""                         // by which the file knows the package
	for _, spec := range file.AST.Imports {
		if spec.Path.Value == strconv.Quote(ProbePath) {
			probe = path.Base(ProbePath)
			if spec.Name != nil {
				probe = spec.Name.Name
			}
		}
	}
	point := func(node ast.Node) string { // X if node is probe.X and X is a point
		if selector, ok := node.(*ast.SelectorExpr); ok {
			pkg, ok := selector.X.(*ast.Ident)
			if ok && pkg.Name == probe && isPoint(selector.Sel.Name) {
				return selector.Sel.Name
			}
		}
		return ""
	}
	for _, decl := range file.AST.Decls {
		fn, _ := decl.(*ast.FuncDecl)
		for node := range ast.Preorder(decl) {
			mention := Mention{Point: point(node), Package: pkg, File: file}
			if call, ok := node.(*ast.CallExpr); ok && len(call.Args) > 0 {
				method, _ := call.Fun.(*ast.SelectorExpr)
				if method != nil && slices.Contains(reports, method.Sel.Name) {
					mention.Point, mention.Method = point(call.Args[0]), method.Sel.Name
					reported[call.Args[0]] = true
				}
			}
			if mention.Point == "" || reported[node] {
				continue
			}
			mention.Line, mention.Node, mention.In = t.Line(node.Pos()), node, fn
			if fn != nil {
				mention.Function = file.funcSymbol(fn)
			}
			all = append(all, mention)
		}
	}
	return all
}
