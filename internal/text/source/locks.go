package source

import (
	"go/ast"
	"go/token"
	"strings"
)

// holdsLock tells from the text of fn alone whether a lock is held at pos: fn's name ends in Locked, or the last call
// of Lock, RLock or lock (a station's own method, which takes the lock and reports a wait) before pos has not been
// undone by an Unlock before pos. A deferred Unlock undoes nothing before the end, and an Unlock in a branch that
// leaves (return, continue, break, panic) does not count for what comes after it.
//
// This is reading, not proof. It is exact for code that keeps to the house rules, where a lock is held for a whole
// function or for a straight run of lines.
func holdsLock(fn *ast.FuncDecl, pos token.Pos) bool {
	if strings.HasSuffix(fn.Name.Name, "Locked") {
		return true
	}
	if fn.Body == nil {
		return false
	}
	walk := &lockWalk{pos: pos}
	ast.Inspect(fn.Body, walk.visit)
	return walk.held
}

// lockWalk goes through a function in the order of its text, up to pos.
type lockWalk struct {
	pos  token.Pos
	held bool // by the calls so far
}

// visit reports whether to go into node: not into what happens at another time, nor into branches that leave, unless
// pos lies in them.
func (w *lockWalk) visit(node ast.Node) bool {
	switch node := node.(type) {
	case *ast.DeferStmt:
		return false
	case *ast.FuncLit:
		return w.inside(node) // another function's locks are not ours
	case *ast.BlockStmt:
		return w.inside(node) || !leaves(node.List)
	case *ast.CommClause:
		return w.inside(node) || !leaves(node.Body)
	case *ast.CaseClause:
		return w.inside(node) || !leaves(node.Body)
	case *ast.CallExpr:
		if node.Pos() < w.pos {
			w.held = afterCall(node, w.held)
		}
	}
	return true
}

func (w *lockWalk) inside(node ast.Node) bool { return node.Pos() <= w.pos && w.pos < node.End() }

// leaves reports whether control never runs past the end of the statements.
func leaves(list []ast.Stmt) bool {
	if len(list) == 0 {
		return false
	}
	switch last := list[len(list)-1].(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return true
	case *ast.ExprStmt:
		call, ok := last.X.(*ast.CallExpr)
		if !ok {
			return false
		}
		name, ok := call.Fun.(*ast.Ident)
		return ok && name.Name == "panic"
	}
	return false
}

// afterCall returns whether a lock is held after a call.
func afterCall(call *ast.CallExpr, held bool) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) != 0 {
		return held
	}
	switch method.Sel.Name {
	case "Lock", "RLock", "lock":
		return true
	case "Unlock", "RUnlock":
		return false
	}
	return held
}
