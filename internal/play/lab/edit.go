package lab

import (
	"bytes"
	"errors"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"golang.org/x/tools/go/ast/astutil"

	"listwatch/internal/text/source"
)

// Break returns the path of the file that the lab changes in the checkout at root, and its text before and after the
// change. It writes nothing. The broken text is formatted and has no unused imports. The error names a missing text or
// symbol.
func (l Lab) Break(root fs.FS) (name string, before, after []byte, err error) {
	decl, err := l.declaration(root)
	if err != nil {
		return "", nil, nil, fmt.Errorf("%s: %w", l.dir(), err)
	}
	from, to, err := l.place(decl)
	if err != nil {
		return "", nil, nil, fmt.Errorf("%s in %s: %w", l.Symbol, l.dir(), err)
	}
	before = decl.File.Src
	after, err = tidy(slices.Concat(before[:from], []byte(l.New), before[to:]))
	return path.Join(l.dir(), decl.File.Path), before, after, err
}

// declaration returns the declaration that the lab changes, as it is in the checkout at root.
func (l Lab) declaration(root fs.FS) (*source.Decl, error) {
	dir, err := fs.Sub(root, l.dir())
	if err != nil {
		return nil, err
	}
	tree, err := source.Parse(dir)
	if err != nil {
		return nil, err
	}
	if pkg := tree.In("."); pkg != nil {
		return pkg.Find(l.Symbol, "")
	}
	return nil, errors.New("there is no package")
}

// place returns the range [from, to) of the file's bytes that the lab replaces.
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

// tidy removes unused imports from a file, and formats it.
func tidy(src []byte) ([]byte, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", src, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	for _, spec := range slices.Clone(file.Imports) {
		name, importPath := "", strings.Trim(spec.Path.Value, `"`)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if !astutil.UsesImport(file, importPath) {
			astutil.DeleteNamedImport(fset, file, name, importPath)
		}
	}
	var tidied bytes.Buffer
	err = format.Node(&tidied, fset, file)
	return tidied.Bytes(), err
}

// Solution returns a diff for git that turns a lab's broken sources into those at root. For a Predict it returns the
// answer, and the record that shows it. root must be the checkout: a working copy lacks the edit.
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
		return fmt.Sprintf("%s (record %d of %s)\n", l.Answer, l.Proof, l.Take), nil
	}
	name, present, broken, err := l.Break(os.DirFS(root))
	return string(diff.Diff("a/"+name, broken, "b/"+name, present)), err
}
