package policy

import (
	"strings"

	"listwatch/internal/text/source"
)

// checkChapterImports holds reading order = folder order = import order. Tests keep it too: who reads chapter 3 has not
// read chapter 6.
func checkChapterImports(repo *Repo) []Fault {
	var faults []Fault
	for _, each := range importsOf(repo) {
		number := chapterNumber(each.pkg.Dir)
		if number == 0 {
			continue
		}
		if reason := refuse(repo, number, each.file.Test, each.path); reason != "" {
			faults = append(faults, each.fault(reason))
		}
	}
	return faults
}

// onHandlers is built on the types of the handlers' chapter: it is no leaf, and only the chapter that wires everything may
// import it.
const (
	onHandlers   = "internal/server/apiserver"
	chapterOfAll = 15
)

// refuse says why a file of a chapter may not import a package, "" if it may.
func refuse(repo *Repo, number int, test bool, imported string) string {
	ours, isOurs := strings.CutPrefix(imported, Module+"/")
	switch {
	case !isOurs: // .golangci.yml lists the modules that chapters may use
		return ""
	}
	other := chapterNumber(ours)
	switch {
	case other > 0 && (other < number || other == number && test):
		return ""
	case other > 0:
		return "a chapter imports only chapters with lower numbers"
	case within(onHandlers, ours) && number < chapterOfAll:
		return "only the chapter that wires everything knows what is built on the handlers"
	case strings.HasPrefix(ours, "internal/") && (test || leaf(repo, ours) || within(onHandlers, ours)):
		return ""
	case strings.HasPrefix(ours, "internal/"):
		return "it is no leaf: it imports chapters itself"
	}
	return "chapters know nothing of what is built on them"
}

// leaf reports whether a package of ours imports no chapter, directly or through other packages of ours.
func leaf(repo *Repo, dir string) bool {
	pkg := repo.Tree.In(dir)
	if pkg == nil {
		return false
	}
	for _, file := range pkg.Files {
		if file.Test {
			continue
		}
		for _, imported := range file.Imports() {
			ours, isOurs := strings.CutPrefix(imported, Module+"/")
			if isOurs && (strings.HasPrefix(ours, "chapters") || !leaf(repo, ours)) {
				return false
			}
		}
	}
	return true
}

// checkLayers holds what is above chapters: viz reads the log and Snapshots, and knows no station; only cmd imports
// viz.
func checkLayers(repo *Repo) []Fault {
	var faults []Fault
	for _, each := range importsOf(repo) {
		ours := strings.TrimPrefix(each.path, Module+"/")
		switch {
		case within("viz", each.pkg.Dir) && !each.file.Test && chapterNumber(ours) > 0:
			faults = append(faults, each.fault("the page reads the log and Snapshots, nothing else"))
		case strings.HasPrefix(each.pkg.Dir, "internal/") && (within("viz", ours) || strings.HasPrefix(ours, "cmd/")):
			faults = append(faults, each.fault("nothing below knows the page"))
		}
	}
	return faults
}

// importing is one import.
type importing struct {
	pkg  *source.Package
	file *source.File
	line int
	path string
}

func (i importing) fault(reason string) Fault {
	return fault(i.file.Path, i.line, "imports %s: %s", i.path, reason)
}

func importsOf(repo *Repo) []importing {
	var all []importing
	for _, pkg := range repo.Tree.Packages {
		for _, file := range pkg.Files {
			for _, spec := range file.AST.Imports {
				all = append(all, importing{pkg, file, repo.Tree.Line(spec.Pos()), strings.Trim(spec.Path.Value, `"`)})
			}
		}
	}
	return all
}

// within reports whether an import path lies in a module or folder.
func within(folder, imported string) bool {
	return imported == folder || strings.HasPrefix(imported, folder+"/")
}
