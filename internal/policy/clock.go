package policy

import (
	"go/ast"
	"slices"

	"listwatch/internal/source"
)

// wallClock are the functions that read or wait on the clock on the wall, by import path. Chapters are given a
// clock.WithTicker, so that a test can stop time and a teacher can slow it down.
var wallClock = map[string][]string{
	"time":               {"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "NewTimer", "NewTicker", "Tick"},
	"context":            {"WithTimeout", "WithDeadline", "WithTimeoutCause", "WithDeadlineCause"},
	"k8s.io/utils/clock": {"RealClock"},
}

func checkClock(repo *Repo) []Fault {
	var faults []Fault
	for _, pkg := range repo.Tree.Packages {
		if chapterNumber(pkg.Dir) == 0 {
			continue
		}
		for _, file := range pkg.Files {
			if !file.Test {
				faults = append(faults, wallClockIn(repo, file)...)
			}
		}
	}
	return faults
}

func wallClockIn(repo *Repo, file *source.File) []Fault {
	var faults []Fault
	imports := file.Imports()
	for node := range ast.Preorder(file.AST) {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			continue
		}
		pkg, ok := selector.X.(*ast.Ident)
		if ok && slices.Contains(wallClock[imports[pkg.Name]], selector.Sel.Name) {
			faults = append(faults, fault(file.Path, repo.Tree.Line(node.Pos()), "%s.%s: take the time from the injected clock", pkg.Name, selector.Sel.Name))
		}
	}
	return faults
}
