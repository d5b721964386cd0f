package lab

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"listwatch/internal/source"
)

// Edit changes one declaration. Either Body is set, or Old and New are.
type Edit struct {
	Dir    string // "chapters/06-cacher"
	Symbol string // as internal/source names declarations: "Cacher.dispatchEvent"
	Body   string // replaces everything between the braces of a function
	Old    string // stands exactly once in the declaration, its doc comment included, …
	New    string // … and is replaced by this
}

// Apply returns the files that the edits change, by path. Imports that nothing uses any more are removed; the result is
// formatted. The error names the edit whose place is not there.
func Apply(root fs.FS, edits []Edit) (map[string][]byte, error) {
	changed := map[string][]byte{}
	for _, each := range edits {
		if err := each.apply(root, changed); err != nil {
			return nil, fmt.Errorf("%s in %s: %w", each.Symbol, each.Dir, err)
		}
	}
	return changed, nil
}

func (e Edit) apply(root fs.FS, changed map[string][]byte) error {
	tree, pkg, err := e.parse(root, changed)
	if err != nil {
		return err
	}
	decl, err := pkg.Find(e.Symbol, "")
	if err != nil {
		return err
	}
	src := decl.File.Src
	from, to, err := e.place(decl)
	if err != nil {
		return err
	}
	text := e.New
	if e.Body != "" {
		text = "\n" + strings.Trim(e.Body, "\n") + "\n"
	}
	name := path.Join(e.Dir, decl.File.Path)
	changed[name] = bytes.Join([][]byte{src[:from], []byte(text), src[to:]}, nil)
	if tree, pkg, err = e.parse(root, changed); err != nil {
		return err
	}
	for _, file := range pkg.Files {
		if file.Path == decl.File.Path {
			changed[name], err = tidy(tree, file)
		}
	}
	return err
}

// parse reads the package as it stands after the edits before this one.
func (e Edit) parse(root fs.FS, changed map[string][]byte) (*source.Tree, *source.Package, error) {
	sub, err := fs.Sub(root, e.Dir)
	if err != nil {
		return nil, nil, err
	}
	tree, err := source.Parse(overlay{sub, e.Dir, changed})
	if err != nil {
		return nil, nil, err
	}
	pkg := tree.In(".")
	if pkg == nil {
		return nil, nil, errors.New("there is no package")
	}
	return tree, pkg, nil
}

// place returns which bytes of the file are replaced.
func (e Edit) place(decl *source.Decl) (from, to int, err error) {
	if e.Body != "" {
		from, to, ok := decl.Body()
		if !ok {
			return 0, 0, fmt.Errorf("it has no body")
		}
		return from, to, nil
	}
	if n := strings.Count(decl.Src, e.Old); n != 1 {
		return 0, 0, fmt.Errorf("%q occurs in it %d times, want once", e.Old, n)
	}
	start := bytes.Index(decl.File.Src, []byte(decl.Src))
	from = start + strings.Index(decl.Src, e.Old)
	return from, from + len(e.Old), nil
}

// overlay is a folder in which some files have been changed.
type overlay struct {
	fs.FS
	dir     string
	changed map[string][]byte
}

// ReadFile returns the changed file, if there is one.
func (o overlay) ReadFile(name string) ([]byte, error) {
	if src, ok := o.changed[path.Join(o.dir, name)]; ok {
		return src, nil
	}
	return fs.ReadFile(o.FS, name)
}

// tidy removes the imports that the file does not use, and formats it. Only lines are emptied before that, so positions hold.
func tidy(tree *source.Tree, file *source.File) ([]byte, error) {
	used := map[string]bool{"_": true, ".": true}
	ast.Inspect(file.AST, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok {
			if name, ok := selector.X.(*ast.Ident); ok {
				used[name.Name] = true
			}
		}
		return true
	})
	lines := strings.Split(string(file.Src), "\n")
	for name, importPath := range file.Imports() {
		for _, spec := range file.AST.Imports {
			if !used[name] && spec.Path.Value == strconv.Quote(importPath) {
				lines[tree.Line(spec.Pos())-1] = ""
			}
		}
	}
	return format.Source([]byte(strings.Join(lines, "\n")))
}
