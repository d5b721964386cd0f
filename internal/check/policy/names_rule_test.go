package policy

import (
	"io/fs"
	"strings"

	"listwatch/internal/text/book"
	"listwatch/internal/text/source"
)

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
	if b.Problems == nil {
		return nil
	}
	var faults []Fault
	for line := range strings.Lines(b.Problems.Error()) {
		where, what, _ := strings.Cut(strings.TrimSpace(line), ": ")
		faults = append(faults, Fault{Where: where, What: what})
	}
	return faults
}
