package source

import (
	"fmt"
	"go/ast"
	"strings"
)

// Note is one "Upstream:" or "Differs:" line with the place where it stands.
type Note struct {
	Package  *Package
	File     *File
	Line     int
	Symbol   string // the declaration it documents; "" for the package as a whole
	Upstream Upstream
	Differs  string // if not "", this is a Differs line and Upstream is zero
	Err      error  // if not nil, the line has not the agreed form
}

const (
	upstreamMark = "Upstream:"
	differsMark  = "Differs:"
)

// Notes returns all notes of the package in the order in which they stand, those with a wrong form included. Test
// files have none.
func (p *Package) Notes() []Note {
	var all []Note
	for _, file := range p.Files {
		if file.Test {
			continue
		}
		for _, group := range file.AST.Comments {
			symbol := p.documented(file, group)
			for _, note := range p.tree.scan(group) {
				note.Package, note.File, note.Symbol = p, file, symbol
				all = append(all, note)
			}
		}
	}
	return all
}

// scan finds the notes of a comment. An Upstream note is one line; a Differs note goes on until a blank line or the
// next note.
func (t *Tree) scan(group *ast.CommentGroup) []Note {
	var notes []Note
	differs := -1 // index of the Differs note that is still growing
	for _, comment := range group.List {
		first := t.Line(comment.Pos())
		for i, text := range strings.Split(comment.Text, "\n") {
			text = strings.TrimSpace(strings.TrimLeft(strings.TrimSuffix(text, "*/"), "/*"))
			switch {
			case strings.HasPrefix(text, upstreamMark):
				upstream, err := ParseUpstream(strings.TrimSpace(strings.TrimPrefix(text, upstreamMark)))
				notes = append(notes, Note{Line: first + i, Upstream: upstream, Err: err})
				differs = -1
			case strings.HasPrefix(text, differsMark):
				note := Note{Line: first + i, Differs: strings.TrimSpace(strings.TrimPrefix(text, differsMark))}
				if note.Differs == "" {
					note.Err = fmt.Errorf("differs line says nothing")
				}
				notes = append(notes, note)
				differs = len(notes) - 1
			case text == "":
				differs = -1
			case differs >= 0:
				notes[differs].Differs += " " + text
			}
		}
	}
	return notes
}

// documented returns the symbol that a comment is about: the smallest declaration whose doc comment it is or in which
// it stands; "" if it stands between declarations.
func (p *Package) documented(file *File, group *ast.CommentGroup) string {
	symbol, size := "", 0
	from, to := p.tree.Line(group.Pos()), p.tree.Line(group.End())
	for _, decl := range p.Decls {
		inside := decl.File == file && decl.From <= from && to <= decl.To
		if inside && (symbol == "" || decl.To-decl.From < size) {
			symbol, size = decl.Symbol, decl.To-decl.From
		}
	}
	return symbol
}
