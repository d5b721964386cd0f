package policy

import (
	"go/ast"
	"slices"
	"strings"

	"listwatch/internal/probe"
	"listwatch/internal/source"
)

// unpaired are the functions of stations that may have to wait at a channel and do not say so, each with the reason.
var unpaired = map[string]string{
	"chapters/02-etcd3.etcdWatch":               "sent once, and there is room for it",
	"chapters/02-etcd3.processEvent":            "sent once, and there is room for it",
	"chapters/02-etcd3.scheduleEventProcessing": "the queue is full when resultChan is, and Etcd3ResultBlocked says so",
	"chapters/03-reflector.startResync":         "sent once, and there is room for it",
	"chapters/06-cacher.newErrWatcher":          "sent once, and there is room for it",
	"chapters/09-listwatch.send":                "handOver says so before it calls; what is sent otherwise is a stream's last word",
	"chapters/12-processor.pop":                 "it waits for both of its channels at once; who holds it up is the handler, and HandlerCalled says so",
	"chapters/14-controllers.AddAfter":          "the waiting loop never blocks, and has room for a thousand",
}

// checkWaits holds that a function that may have to wait at a channel begins a wait in the log: without it no reader could tell what is
// blocked. The last chapter only wires the others.
func checkWaits(repo *Repo) []Fault {
	var faults []Fault
	found := map[string]bool{}
	dirs := map[string]bool{}
	for _, pkg := range repo.Tree.Packages {
		if number := chapterNumber(pkg.Dir); number == 0 || number == 15 {
			continue
		}
		dirs[pkg.Dir] = true
		for _, file := range pkg.Files {
			if file.Test {
				continue
			}
			for _, decl := range silentSenders(file) {
				name := pkg.Dir + "." + decl.Name.Name
				found[name] = true
				if unpaired[name] == "" {
					faults = append(faults, fault(file.Path, repo.Tree.Line(decl.Pos()), "%s may have to wait at a channel and reports no wait", decl.Name.Name))
				}
			}
		}
	}
	for name := range unpaired {
		if dir := name[:strings.LastIndex(name, ".")]; dirs[dir] && !found[name] {
			faults = append(faults, fault("internal/policy/waits.go", 0, "%s has no wait to be excused for", name))
		}
	}
	slices.SortFunc(faults, func(a, b Fault) int { return strings.Compare(a.String(), b.String()) })
	return faults
}

// silentSenders returns the functions of a file that send on a channel, wait if it is full, and report no such wait.
func silentSenders(file *source.File) (silent []*ast.FuncDecl) {
	for _, decl := range file.AST.Decls {
		function, ok := decl.(*ast.FuncDecl)
		if ok && function.Body != nil && maySendAndWait(function.Body) && !reportsWait(function.Body) {
			silent = append(silent, function)
		}
	}
	return silent
}

// maySendAndWait reports whether there is a send other than one in a select that has something else to do.
func maySendAndWait(body *ast.BlockStmt) bool {
	tries := map[ast.Stmt]bool{}
	for node := range ast.Preorder(body) {
		switch node := node.(type) {
		case *ast.SelectStmt:
			for _, clause := range node.Body.List {
				if hasDefault(node) {
					tries[clause.(*ast.CommClause).Comm] = true
				}
			}
		case *ast.SendStmt:
			if !tries[node] {
				return true
			}
		}
	}
	return false
}

func hasDefault(choice *ast.SelectStmt) bool {
	return slices.ContainsFunc(choice.Body.List, func(clause ast.Stmt) bool { return clause.(*ast.CommClause).Comm == nil })
}

// reportsWait reports whether a wait for room, or for a receiver, is begun.
func reportsWait(body *ast.BlockStmt) bool {
	for node := range ast.Preorder(body) {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			continue
		}
		if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == "probe" && beginsWait(selector.Sel.Name) {
			return true
		}
	}
	return false
}

// beginsWait reports whether the point of that name begins a wait at a channel.
func beginsWait(name string) bool {
	for _, point := range probe.Points() {
		if wait := point.Info().Waits; point.String() == name && (wait == probe.ForRoom || wait == probe.ForTaker) {
			return true
		}
	}
	return false
}
