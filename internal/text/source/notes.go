package source

import (
	"cmp"
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Note is one "Upstream:" line or one "Differs:" paragraph, with its place.
type Note struct {
	Package  *Package
	File     *File
	Line     int
	Symbol   string // the declaration it documents; "" for the package as a whole
	Upstream Upstream
	Differs  string // the text of a Differs paragraph; "" for an Upstream line
	Err      error  // if not nil, the line does not have the agreed form
}

const (
	upstreamMark = "Upstream:"
	differsMark  = "Differs:"
)

// Notes returns all notes of the package, even malformed ones, in the order of the source. Test files have none.
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
	differs := -1 // the index of the Differs note that is not complete yet
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
					note.Err = fmt.Errorf("the Differs line is empty")
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

// documented returns the symbol that a comment is about: the smallest declaration whose lines or doc comment contain
// the comment, or "" if it is between declarations.
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

// The versions that we follow. go.mod pins the modules; the forge has the first two versions as tags.
const (
	KubernetesVersion = "v1.37.2" // k8s.io/apiserver and its siblings at v0.37.2
	EtcdVersion       = "v3.7.3"
	UtilsVersion      = "cf1189d6abe3" // k8s.io/utils has no tags
)

// Upstream is a parsed "Upstream:" line: the place of our declaration's counterpart in the real source.
//
//	Upstream: k8s.io/apiserver/pkg/storage/cacher/cacher.go: (*Cacher).dispatchEvents
//	Upstream: k8s.io/apiserver/pkg/storage/interfaces.go: Interface
//	Upstream: k8s.io/client-go/tools/cache
type Upstream struct {
	Path   string // the import path of a package, or of a file in one
	Symbol string // "" if the line names the file or package as a whole
}

var (
	upstreamPath = regexp.MustCompile(`^[a-z0-9]+(\.[a-z0-9]+)+(/[A-Za-z0-9_.-]+)+$`)
	// upstreamSymbol matches "Name", "(*Type).Method", "(Type).Method" or "Interface.Method".
	upstreamSymbol = regexp.MustCompile(`^(?:\(\*?[A-Za-z_]\w*\)\.|[A-Za-z_]\w*\.)?[A-Za-z_]\w*$`)
)

// ParseUpstream parses the text after "Upstream: ". It checks only the form; internal/check/compat checks that the file
// and the symbol exist in the real modules.
func ParseUpstream(text string) (Upstream, error) {
	where, symbol, named := strings.Cut(text, ": ")
	if !upstreamPath.MatchString(where) {
		return Upstream{}, fmt.Errorf("upstream %q: %q is not the import path of a package or file", text, where)
	}
	if named && !upstreamSymbol.MatchString(symbol) {
		return Upstream{}, fmt.Errorf("upstream %q: %q is not Symbol, Type.Method or (*Type).Method", text, symbol)
	}
	return Upstream{where, symbol}, nil
}

// URL returns the address of the pinned source on the forge, or "" if we do not know its repository. Readers may open
// it; the program never fetches it.
func (u Upstream) URL() string {
	view := "tree" // for a folder
	if path.Ext(u.Path) == ".go" {
		view = "blob"
	}
	for _, forge := range forges {
		if rest, ok := strings.CutPrefix(u.Path, forge.prefix); ok {
			tree := "https://github.com/" + forge.repository + "/" + view + "/" + forge.version + "/"
			return tree + forge.folder + rest
		}
	}
	return ""
}

// forges lists where the modules are developed. The first matching prefix counts.
var forges = []struct{ prefix, repository, version, folder string }{
	{"k8s.io/kubernetes/", "kubernetes/kubernetes", KubernetesVersion, ""},
	{"k8s.io/utils/", "kubernetes/utils", UtilsVersion, ""},
	{"k8s.io/", "kubernetes/kubernetes", KubernetesVersion, "staging/src/k8s.io/"},
	{"go.etcd.io/etcd/server/v3/", "etcd-io/etcd", EtcdVersion, "server/"},
	{"go.etcd.io/etcd/api/v3/", "etcd-io/etcd", EtcdVersion, "api/"},
	{"go.etcd.io/etcd/pkg/v3/", "etcd-io/etcd", EtcdVersion, "pkg/"},
	{"go.etcd.io/etcd/", "etcd-io/etcd", EtcdVersion, ""}, // the client is in a folder whose name has its version
}

// ProbePath is the import path of the package that declares points.
const ProbePath = "listwatch/internal/observe/probe"

// Mention is a place in the source that names a probe point, usually to report it:
//
//	w.probe.At(probe.RingAppend, event.Key, event.ResourceVersion, start, end, capacity, oldest)
type Mention struct {
	Point    string // "RingAppend"
	Method   string // "At", "Event", "Text" or "Texts"; "" if the place names the point in any other way
	Package  *Package
	File     *File
	Line     int
	Node     ast.Node      // the call; for a place that only names the point, that name
	In       *ast.FuncDecl // nil: the place is outside any function
	Function string        // "WatchCache.updateCacheLocked"; "" if In is nil
}

// reports are the methods that report a point, which is their first argument.
var reports = []string{"At", "Event", "Text", "Texts"}

// Mentions returns every mention, outside tests, of a name of package probe that isPoint accepts, sorted by point.
func (t *Tree) Mentions(isPoint func(name string) bool) []Mention {
	var all []Mention
	for _, pkg := range t.Packages {
		for _, file := range pkg.Files {
			if !file.Test {
				all = append(all, t.mentionsIn(pkg, file, isPoint)...)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Mention) int { return cmp.Compare(a.Point, b.Point) })
	return all
}

// mentionsIn walks one file. If a point is the first argument of At, Event, Text or Texts, it is a report, and the walk
// does not count it a second time as a mere mention.
func (t *Tree) mentionsIn(pkg *Package, file *File, isPoint func(string) bool) []Mention {
	var all []Mention
	reported := make(map[ast.Node]bool) // points that the walk has counted as part of a call
	probe := ""                         // the file's name for the probe package
	for _, spec := range file.AST.Imports {
		if spec.Path.Value == strconv.Quote(ProbePath) {
			probe = path.Base(ProbePath)
			if spec.Name != nil {
				probe = spec.Name.Name
			}
		}
	}
	point := func(node ast.Node) string { // returns X if node is probe.X and X is a point
		if selector, ok := node.(*ast.SelectorExpr); ok {
			pkg, ok := selector.X.(*ast.Ident)
			if ok && pkg.Name == probe && isPoint(selector.Sel.Name) {
				return selector.Sel.Name
			}
		}
		return ""
	}
	for _, decl := range file.AST.Decls {
		fn, _ := decl.(*ast.FuncDecl)
		for node := range ast.Preorder(decl) {
			mention := Mention{Point: point(node), Package: pkg, File: file}
			if call, ok := node.(*ast.CallExpr); ok && len(call.Args) > 0 {
				method, _ := call.Fun.(*ast.SelectorExpr)
				if method != nil && slices.Contains(reports, method.Sel.Name) {
					mention.Point, mention.Method = point(call.Args[0]), method.Sel.Name
					reported[call.Args[0]] = true
				}
			}
			if mention.Point == "" || reported[node] {
				continue
			}
			mention.Line, mention.Node, mention.In = t.Line(node.Pos()), node, fn
			if fn != nil {
				mention.Function = file.funcSymbol(fn)
			}
			all = append(all, mention)
		}
	}
	return all
}
