// Package source reads our own Go files as text with structure: it finds a declaration by its symbol, the lines that
// name its upstream counterpart, and the one line at which each probe point is reported. The book, the map of symbols
// and the page use this package; no text repeats such facts by hand, so they cannot drift from the code.
//
// The package parses files without checking types. That takes only milliseconds, and works on the sources embedded in
// the program.
//
// There is no goroutine and no lock in this package; a [Tree] does not change after Parse.
package source

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Tree holds the Go files below one folder, except those that [Parse] leaves out.
type Tree struct {
	Packages []*Package // sorted by Dir, then Name
	fset     *token.FileSet
}

// Package holds the files of one folder with one package clause, so an external test package is a Package of its own.
type Package struct {
	Dir   string // the slash path from the root of the tree, such as "06-cacher"; "." for the root
	Name  string // the name in the package clause
	Files []*File
	tree  *Tree
	// Decls are all declarations in file order: functions, types, constants and variables; methods as "Type.Method";
	// methods of interfaces and fields of structs as "Type.Name", because comments mention these, too.
	Decls []*Decl
}

// File is one parsed file.
type File struct {
	Path string // the slash path from the root of the tree
	Src  []byte
	AST  *ast.File
	Test bool // whether the name ends in _test.go
}

// Parse reads every .go file of fsys, except in nested modules and in folders whose name is testdata or begins with a
// dot or an underscore. A file that does not parse is an error.
func Parse(fsys fs.FS) (*Tree, error) {
	tree := &Tree{fset: token.NewFileSet()}
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && skipped(fsys, name):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		return tree.add(fsys, name)
	})
	if err != nil {
		return nil, fmt.Errorf("parse sources: %w", err)
	}
	slices.SortFunc(tree.Packages, func(a, b *Package) int {
		return strings.Compare(a.Dir+" "+a.Name, b.Dir+" "+b.Name)
	})
	return tree, nil
}

// skipped reports whether a folder is outside the module by the rules of the go tool.
func skipped(fsys fs.FS, name string) bool {
	base := path.Base(name)
	_, err := fs.Stat(fsys, path.Join(name, "go.mod"))
	return name != "." && (base == "testdata" || base[0] == '.' || base[0] == '_' || err == nil)
}

// add parses one file and puts it into its package.
func (t *Tree) add(fsys fs.FS, name string) error {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	parsed, err := parser.ParseFile(t.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	file := &File{Path: name, Src: src, AST: parsed, Test: strings.HasSuffix(name, "_test.go")}
	pkg := &Package{Dir: path.Dir(name), Name: parsed.Name.Name, tree: t}
	same := func(other *Package) bool { return other.Dir == pkg.Dir && other.Name == pkg.Name }
	if i := slices.IndexFunc(t.Packages, same); i >= 0 {
		pkg = t.Packages[i]
	} else {
		t.Packages = append(t.Packages, pkg)
	}
	pkg.Files = append(pkg.Files, file)
	pkg.collect(file)
	return nil
}

// In returns the package in folder dir that is not an external test package, or nil.
func (t *Tree) In(dir string) *Package {
	for _, pkg := range t.Packages {
		if pkg.Dir == dir && !strings.HasSuffix(pkg.Name, "_test") {
			return pkg
		}
	}
	return nil
}

// Holding returns the package to which a file belongs, or nil if there is no such file.
func (t *Tree) Holding(file string) *Package {
	for _, pkg := range t.Packages {
		if slices.ContainsFunc(pkg.Files, func(f *File) bool { return f.Path == file }) {
			return pkg
		}
	}
	return nil
}

// Line returns the line number of a position in one of the tree's files.
func (t *Tree) Line(pos token.Pos) int { return t.fset.Position(pos).Line }

// Lines returns the whole lines of the file between two positions, including a comment after the last brace.
func (f *File) Lines(from, to token.Pos) string {
	first := bytes.LastIndexByte(f.Src[:from-f.AST.FileStart], '\n') + 1
	rest, _, _ := bytes.Cut(f.Src[to-f.AST.FileStart:], []byte("\n"))
	return string(f.Src[first : int(to-f.AST.FileStart)+len(rest)])
}
