package lab

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"listwatch/internal/text/source"
)

// Break returns the file of the checkout at root that the lab changes, and its broken text: formatted, and without
// imports that nothing uses any more. The error says which text or symbol is not there.
func (l Lab) Break(root fs.FS) (name string, before, after []byte, err error) {
	dir, err := fs.Sub(root, l.dir())
	if err != nil {
		return "", nil, nil, err
	}
	tree, err := source.Parse(dir)
	if err != nil {
		return "", nil, nil, err
	}
	pkg := tree.In(".")
	if pkg == nil {
		return "", nil, nil, fmt.Errorf("%s: there is no package", l.dir())
	}
	decl, err := pkg.Find(l.Symbol, "")
	if err != nil {
		return "", nil, nil, fmt.Errorf("%s: %w", l.dir(), err)
	}
	from, to, err := l.place(decl)
	if err != nil {
		return "", nil, nil, fmt.Errorf("%s in %s: %w", l.Symbol, l.dir(), err)
	}
	before = decl.File.Src
	after, err = tidy(slices.Concat(before[:from], []byte(l.New), before[to:]), decl.File.Imports())
	return path.Join(l.dir(), decl.File.Path), before, after, err
}

// place returns which bytes of the file are replaced: [from, to).
func (l Lab) place(decl *source.Decl) (from, to int, err error) {
	if l.Old == "" {
		from, to, ok := decl.Body()
		if !ok {
			return 0, 0, errors.New("it has no body")
		}
		return from, to, nil
	}
	if n := strings.Count(decl.Src, l.Old); n != 1 {
		return 0, 0, fmt.Errorf("%q occurs in it %d times, want once", l.Old, n)
	}
	from = bytes.Index(decl.File.Src, []byte(decl.Src)) + strings.Index(decl.Src, l.Old)
	return from, from + len(l.Old), nil
}

// tidy removes the imports that the file does not use, of those given by name, and formats it.
func tidy(src []byte, imports map[string]string) ([]byte, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{"_": true, ".": true}
	ast.Inspect(file, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok {
			if name, ok := selector.X.(*ast.Ident); ok {
				used[name.Name] = true
			}
		}
		return true
	})
	lines := strings.SplitAfter(string(src), "\n")
	for name, importPath := range imports {
		if !used[name] {
			lines = slices.DeleteFunc(lines, func(line string) bool {
				return strings.HasSuffix(strings.TrimSpace(line), strconv.Quote(importPath))
			})
		}
	}
	return format.Source([]byte(strings.Join(lines, "")))
}

// Solution returns what turns the broken sources of a lab into those at root, as a diff that git applies; for a Predict
// the answer and the record that shows it. It reads the lab at root: a working copy does not have its edit.
func Solution(root, id string) (string, error) {
	all, err := Load(os.DirFS(filepath.Join(root, "chapters")))
	if err != nil {
		return "", err
	}
	l, err := byID(all, id)
	if err != nil {
		return "", err
	}
	if l.Kind == Predict {
		answer, seq, err := l.answer()
		return fmt.Sprintf("%s (record %d of %s)\n", answer, seq, l.Take), err
	}
	name, present, broken, err := l.Break(os.DirFS(root))
	return string(diff.Diff("a/"+name, broken, "b/"+name, present)), err
}
