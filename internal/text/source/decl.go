package source

import (
	"fmt"
	"go/ast"
	"path"
	"strings"
)

// Decl is a declaration as written in its file: doc comment and body, byte for byte.
type Decl struct {
	Symbol string // "Cacher", "Cacher.dispatchEvents", "bookmarkFrequency"
	File   *File
	From   int    // the first line, including the doc comment
	To     int    // the last line, included
	Src    string // the whole lines From to To, without the last newline
	node   ast.Node
	name   *ast.Ident
	pkg    *Package

	// The notes about upstream in its doc comment that have the agreed form.
	Upstream []Upstream
	Differs  []string // one sentence or several, line breaks removed
}

// Line returns the line of the declared name.
func (d *Decl) Line() int { return d.pkg.tree.Line(d.name.Pos()) }

// collect appends the declarations of a file to p.Decls.
func (p *Package) collect(file *File) {
	for _, decl := range file.AST.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			p.declare(file, file.funcSymbol(decl), decl.Name, decl, decl.Doc)
		case *ast.GenDecl:
			p.block(file, decl)
		}
	}
}

// Find returns the declaration of a symbol as in [Decl].Symbol: "Func", "Type.Method", "Type.Field". If file is not "",
// the file of that name in the package's folder must declare the symbol. A missing declaration is an error.
func (p *Package) Find(symbol, file string) (*Decl, error) {
	var elsewhere *Decl
	for _, decl := range p.Decls {
		if decl.Symbol != symbol {
			continue
		}
		if file == "" || decl.File.Path == path.Join(p.Dir, file) {
			return decl, nil
		}
		elsewhere = decl
	}
	if elsewhere != nil {
		return nil, fmt.Errorf("%s is declared in %s, not in %s", symbol, elsewhere.File.Path, path.Join(p.Dir, file))
	}
	return nil, fmt.Errorf("%s is not declared in %s", symbol, p.Dir)
}

// funcSymbol returns the name of a function or method in prose: with the receiver's type, but no type parameters.
func (f *File) funcSymbol(decl *ast.FuncDecl) string {
	if decl.Recv == nil || len(decl.Recv.List) == 0 {
		return decl.Name.Name
	}
	return f.typeName(decl.Recv.List[0].Type) + "." + decl.Name.Name
}

// typeName returns the name of a type without stars, package and type parameters.
func (f *File) typeName(expr ast.Expr) string {
	written, _, _ := strings.Cut(string(f.Src[expr.Pos()-f.AST.FileStart:expr.End()-f.AST.FileStart]), "[")
	return written[strings.LastIndexAny(written, "*.")+1:]
}

// block declares the names of one const, var or type block. Constants and variables of one block belong together
// (an iota alone explains nothing), so the whole block is their declaration. Each type is a declaration of its own.
func (p *Package) block(file *File, block *ast.GenDecl) {
	for _, spec := range block.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			node, doc := ast.Node(spec), spec.Doc
			if !block.Lparen.IsValid() {
				node, doc = block, block.Doc
			}
			p.declare(file, spec.Name.Name, spec.Name, node, doc)
			switch body := spec.Type.(type) {
			case *ast.StructType:
				p.members(file, spec.Name.Name, body.Fields)
			case *ast.InterfaceType:
				p.members(file, spec.Name.Name, body.Methods)
			}
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				p.declare(file, name.Name, name, block, block.Doc)
			}
		}
	}
}

// members declares the fields of a struct type, or the methods of an interface type, whose name is of.
func (p *Package) members(file *File, of string, fields *ast.FieldList) {
	for _, field := range fields.List {
		names := field.Names
		if len(names) == 0 { // an embedded type
			names = []*ast.Ident{{NamePos: field.Type.Pos(), Name: file.typeName(field.Type)}}
		}
		for _, name := range names {
			p.declare(file, of+"."+name.Name, name, field, field.Doc)
		}
	}
}

// declare appends a declaration to p.Decls, with the lines of node and its doc comment.
func (p *Package) declare(file *File, symbol string, name *ast.Ident, node ast.Node, doc *ast.CommentGroup) {
	d := &Decl{Symbol: symbol, File: file, To: p.tree.Line(node.End()), node: node, name: name, pkg: p}
	p.Decls = append(p.Decls, d)
	from := node.Pos()
	if doc != nil {
		from = doc.Pos()
		for _, note := range p.tree.scan(doc) {
			switch {
			case note.Err != nil:
			case note.Differs != "":
				d.Differs = append(d.Differs, note.Differs)
			default:
				d.Upstream = append(d.Upstream, note.Upstream)
			}
		}
	}
	d.From, d.Src = p.tree.Line(from), file.Lines(from, node.End())
}

// Body returns the offsets in File.Src of the text between a function's braces; ok is false if d has none.
func (d *Decl) Body() (from, to int, ok bool) {
	fn, ok := d.node.(*ast.FuncDecl)
	if !ok || fn.Body == nil {
		return 0, 0, false
	}
	start := d.File.AST.FileStart
	return int(fn.Body.Lbrace-start) + 1, int(fn.Body.Rbrace - start), true
}

// Without returns the numbers of the lines to leave out of a struct that is shown with only the named fields. The line
// with its name, these fields with their comments, and its last line stay; its doc comment does not. Without names it
// leaves out nothing. A name that is not a field is an error.
func (d *Decl) Without(names []string) (map[int]bool, error) {
	left := make(map[int]bool)
	if len(names) == 0 {
		return left, nil
	}
	for line := d.From; line < d.To; line++ {
		left[line] = line != d.Line()
	}
	for _, name := range names {
		field, err := d.pkg.Find(d.Symbol+"."+name, "")
		if err != nil {
			return nil, err
		}
		if field.From < d.From || field.To > d.To {
			return nil, fmt.Errorf("%s.%s is not in the struct", d.Symbol, name)
		}
		for line := field.From; line <= field.To; line++ {
			left[line] = false
		}
	}
	return left, nil
}
