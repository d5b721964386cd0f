// Package source reads our own Go files as text with structure: it finds a declaration by its symbol, the lines that
// name its upstream counterpart, and the one line at which each probe point is reported. Nothing here is typed by hand
// anywhere else: the book, the map of symbols and the page ask this package, so they cannot drift from the code.
//
// Files are parsed but not type-checked, which takes milliseconds and works on the sources embedded in the program.
//
//   - tree.go: [Parse], which reads a file system into [Package] values.
//   - decl.go: [Package.Find], a declaration by symbol with its real line numbers; [Decl.Fields], a part of a struct.
//   - notes.go: the "Upstream:" and "Differs:" lines.
//   - upstream.go: what an Upstream line may look like, and where it leads.
//   - mentions.go: where probe points are reported.
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

// Tree is every Go file below one folder.
type Tree struct {
	Packages []*Package // sorted by Dir, then Name
	fset     *token.FileSet
}

// Package is the files of one folder that share a package clause: an external test package is one of its own.
type Package struct {
	Dir   string // slash path from the root of the tree, such as "06-cacher"; "." for the root
	Name  string // of the package clause
	Files []*File
	tree  *Tree
	// Decls are all declarations in file order: functions, types, constants and variables; methods as "Type.Method";
	// methods of interfaces and fields of structs as "Type.Name", because comments speak of these too.
	Decls []*Decl
}

// File is one parsed file.
type File struct {
	Path string // slash path from the root of the tree
	Src  []byte
	AST  *ast.File
	Test bool // the name ends in _test.go
}

// Parse reads every .go file of fsys except those in folders named testdata or beginning with a dot or an
// underscore, and those in nested modules. A file that does not parse is an error.
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

// skipped reports whether the go tool would not take a folder as part of this module either.
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

// Holding returns the package that a file belongs to, nil if there is no such file.
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

// Lines returns the whole lines of the file from the one on which from lies to the one on which to does: a comment
// behind the last brace belongs to them.
func (f *File) Lines(from, to token.Pos) string {
	first := bytes.LastIndexByte(f.Src[:from-f.AST.FileStart], '\n') + 1
	rest, _, _ := bytes.Cut(f.Src[to-f.AST.FileStart:], []byte("\n"))
	return string(f.Src[first : int(to-f.AST.FileStart)+len(rest)])
}
