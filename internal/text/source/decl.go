package source

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"path"
)

// Decl is a declaration as its file has it: doc comment and body, byte for byte.
type Decl struct {
	Symbol string // "Cacher", "Cacher.dispatchEvents", "bookmarkFrequency"
	File   *File
	From   int    // first line, that of the doc comment if there is one
	To     int    // last line, included
	Src    string // whole lines [From, To], without the last line's end
	Notes  Notes  // what its doc comment says of upstream
	node   ast.Node
	name   *ast.Ident
	tree   *Tree
}

// Line returns the line on which the declared name itself stands.
func (d *Decl) Line() int { return d.tree.Line(d.name.Pos()) }

// collect finds the declarations of the package.
func (p *Package) collect() []*Decl {
	var all []*Decl
	for _, file := range p.Files {
		for _, decl := range file.AST.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				all = append(all, p.decl(file, funcSymbol(decl), decl.Name, decl, decl.Doc))
			case *ast.GenDecl:
				all = append(all, p.genDecls(file, decl)...)
			}
		}
	}
	return all
}

// Find returns the declaration of a symbol: "Func", "Type", "Const", "Var" or "Type.Method". If file is not empty it
// must be declared in that file of the package's folder.
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

// funcSymbol names a function or method the way prose does: receiver type without star and type parameters.
func funcSymbol(decl *ast.FuncDecl) string {
	if decl.Recv == nil || len(decl.Recv.List) == 0 {
		return decl.Name.Name
	}
	return typeName(decl.Recv.List[0].Type) + "." + decl.Name.Name
}

// typeName strips stars and type parameters from the name of a type.
func typeName(expr ast.Expr) string {
	switch expr := expr.(type) {
	case *ast.Ident:
		return expr.Name
	case *ast.StarExpr:
		return typeName(expr.X)
	case *ast.IndexExpr:
		return typeName(expr.X)
	case *ast.IndexListExpr:
		return typeName(expr.X)
	case *ast.SelectorExpr:
		return expr.Sel.Name
	}
	return ""
}

// genDecls returns the declarations of one const, var or type block. Constants and variables of one block belong
// together (an iota alone says nothing), so each of them is the whole block; types stand for themselves.
func (p *Package) genDecls(file *File, block *ast.GenDecl) []*Decl {
	var all []*Decl
	for _, spec := range block.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			node, doc := ast.Node(spec), spec.Doc
			if !block.Lparen.IsValid() {
				node, doc = block, block.Doc
			}
			all = append(all, p.decl(file, spec.Name.Name, spec.Name, node, doc))
			all = append(all, p.members(file, spec)...)
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				all = append(all, p.decl(file, name.Name, name, block, block.Doc))
			}
		}
	}
	return all
}

// members returns what a struct or interface type declares inside.
func (p *Package) members(file *File, spec *ast.TypeSpec) []*Decl {
	var fields *ast.FieldList
	switch body := spec.Type.(type) {
	case *ast.StructType:
		fields = body.Fields
	case *ast.InterfaceType:
		fields = body.Methods
	default:
		return nil
	}
	var all []*Decl
	for _, field := range fields.List {
		names := field.Names
		if len(names) == 0 { // embedded
			if embedded := typeName(field.Type); embedded != "" {
				names = []*ast.Ident{{NamePos: field.Type.Pos(), Name: embedded}}
			}
		}
		for _, name := range names {
			all = append(all, p.decl(file, spec.Name.Name+"."+name.Name, name, field, field.Doc))
		}
	}
	return all
}

// decl cuts the lines of node and its doc comment out of the file.
func (p *Package) decl(file *File, symbol string, name *ast.Ident, node ast.Node, doc *ast.CommentGroup) *Decl {
	from := node.Pos()
	if doc != nil {
		from = doc.Pos()
	}
	first, last := p.tree.lineStart(file, from), p.tree.lineEnd(file, node.End())
	return &Decl{
		Symbol: symbol, File: file, From: p.tree.Line(from), To: p.tree.Line(node.End()),
		Src: string(file.Src[first:last]), Notes: p.tree.notes(doc), node: node, name: name, tree: p.tree,
	}
}

// lineStart and lineEnd widen a position to its whole line: comments behind the last brace belong to it.
func (t *Tree) lineStart(file *File, pos token.Pos) int {
	return bytes.LastIndexByte(file.Src[:t.offset(pos)], '\n') + 1
}

func (t *Tree) lineEnd(file *File, pos token.Pos) int {
	offset := t.offset(pos)
	if n := bytes.IndexByte(file.Src[offset:], '\n'); n >= 0 {
		return offset + n
	}
	return len(file.Src)
}

// Body returns the offsets in File.Src of the text between the braces of a function; ok is false if d is not a
// function.
func (d *Decl) Body() (from, to int, ok bool) {
	fn, ok := d.node.(*ast.FuncDecl)
	if !ok || fn.Body == nil {
		return 0, 0, false
	}
	return d.tree.offset(fn.Body.Lbrace) + 1, d.tree.offset(fn.Body.Rbrace), true
}

// Without returns, by number, the lines that a struct is shown without if it is shown with the named fields only: all
// but its first line, these fields with their comments, and its last line. Without a name it is shown whole. A name
// that is not a field is an error.
func (d *Decl) Without(names []string) (map[int]bool, error) {
	left := make(map[int]bool)
	if len(names) == 0 {
		return left, nil
	}
	for line := d.From; line < d.To; line++ {
		left[line] = line != d.Line()
	}
	pkg := d.tree.Holding(d.File.Path)
	for _, name := range names {
		field, err := pkg.Find(d.Symbol+"."+name, "")
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
