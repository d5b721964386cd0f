package policy

import (
	"io/fs"
	"strings"

	"listwatch/internal/text/book"
	"listwatch/internal/text/source"
)

// checkDocLinks resolves every bracketed name in every comment. Within brackets there may be something of the same
// package, "Cacher" or "Cacher.Watch"; something of a package by the name under which the file imports it,
// "watch.Event"; and something of any package of this repository, "cacher.Cacher", because prose may look ahead where
// imports may not.
func checkDocLinks(repo *Repo) []Fault {
	var faults []Fault
	for _, pkg := range repo.Tree.Packages {
		for _, file := range pkg.Files {
			if file.Generated {
				continue
			}
			for _, link := range repo.Tree.DocLinks(file) {
				if !resolves(repo, pkg, file, link.Text) {
					faults = append(faults, fault(file.Path, link.Line, "[%s] links to nothing", link.Text))
				}
			}
		}
	}
	return faults
}

func resolves(repo *Repo, pkg *source.Package, file *source.File, text string) bool {
	if declared(pkg, text) {
		return true
	}
	if inside := repo.Tree.In(pkg.Dir); inside != nil && declared(inside, text) {
		return true // from an external test package
	}
	name, symbol, _ := strings.Cut(text, ".")
	if imported, ok := file.Imports()[name]; ok {
		return resolvesIn(repo, imported, symbol)
	}
	for _, other := range repo.Tree.Packages {
		if other.Name == name && (symbol == "" || declared(other, symbol)) {
			return true
		}
	}
	return symbol != "" && repo.Outside != nil && resolvesIn(repo, name, symbol) // [sync.Mutex] without an import
}

// resolvesIn reports whether the package at an import path declares a symbol; "" stands for the package itself.
func resolvesIn(repo *Repo, imported, symbol string) bool {
	if ours, ok := strings.CutPrefix(imported, Module+"/"); ok {
		pkg := repo.Tree.In(ours)
		return pkg != nil && (symbol == "" || declared(pkg, symbol))
	}
	if repo.Outside == nil {
		return true
	}
	pkg := repo.Outside(imported)
	return pkg != nil && (symbol == "" || declared(pkg, symbol))
}

// declared reports whether a package declares a symbol, directly or by embedding.
func declared(pkg *source.Package, symbol string) bool {
	if _, err := pkg.Find(symbol, ""); err == nil {
		return true
	}
	owner, member, ok := strings.Cut(symbol, ".")
	if !ok {
		return false
	}
	for _, decl := range pkg.Decls() {
		embedded, ok := strings.CutPrefix(decl.Symbol, owner+".")
		if ok && embedded != owner && embedded != member && declared(pkg, embedded+"."+member) {
			return true
		}
	}
	return false
}

// checkNotes looks at the form of Upstream and Differs lines. That the upstream symbols exist is checked in
// internal/check/compat, which has the original at hand.
func checkNotes(repo *Repo) []Fault {
	var faults []Fault
	for _, pkg := range repo.Tree.Packages {
		for _, note := range pkg.Notes() {
			if note.Err != nil {
				faults = append(faults, fault(note.File.Path, note.Line, "%v", note.Err))
			}
		}
	}
	return faults
}

// checkBook sets the book and returns what it complains about.
func checkBook(repo *Repo) []Fault {
	sub, err := fs.Sub(repo.FS, "chapters")
	if err != nil {
		return []Fault{fault("chapters", 0, "%v", err)}
	}
	docs, err := fs.Sub(repo.FS, "docs")
	if err != nil {
		return []Fault{fault("docs", 0, "%v", err)}
	}
	b, err := book.New(sub, docs)
	if err != nil {
		return []Fault{fault("chapters", 0, "%v", err)}
	}
	err = b.Check()
	if err == nil {
		return nil
	}
	var faults []Fault
	for line := range strings.Lines(err.Error()) {
		where, what, _ := strings.Cut(strings.TrimSpace(line), ": ")
		faults = append(faults, Fault{Where: where, What: what})
	}
	return faults
}
