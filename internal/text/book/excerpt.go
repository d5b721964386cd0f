package book

import (
	"fmt"
	"html"
	"path"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"

	"listwatch/internal/text/source"
)

// excerpt stands where prose asked for a declaration, or for what an Example prints:
//
//	[Cacher.dispatchEvents](dispatch.go "code")
//	[Example_blockOnTheSlowest](first_try_test.go "code")
//	[Example_blockOnTheSlowest](first_try_test.go "output")
//
// alone in a paragraph. On a forge that is a link to the file. The code of an Example ends before its output, which is folded.
type excerptNode struct {
	ast.BaseBlock
	symbol string
	file   string       // as written
	decl   *source.Decl // nil if it does not resolve
	output bool         // what the Example prints, not its code
}

var kindExcerpt = ast.NewNodeKind("Excerpt")

// Kind implements [ast.Node].
func (n *excerptNode) Kind() ast.NodeKind { return kindExcerpt }

// Dump implements [ast.Node].
func (n *excerptNode) Dump(src []byte, level int) {
	ast.DumpHelper(n, src, level, map[string]string{"symbol": n.symbol, "file": n.file}, nil)
}

// excerpt replaces a paragraph that asks for a declaration and reports whether it was one.
func (d *document) excerpt(paragraph *ast.Paragraph) bool {
	link, ok := paragraph.FirstChild().(*ast.Link)
	if !ok || string(link.Title) != "code" && string(link.Title) != "output" {
		return false
	}
	if paragraph.ChildCount() != 1 {
		d.problem(paragraph, "a code link stands alone in its paragraph")
		return false
	}
	node := &excerptNode{symbol: d.text(link), file: string(link.Destination), output: string(link.Title) == "output"}
	node.decl = d.resolve(paragraph, node.symbol, node.file)
	if node.decl != nil && node.output {
		if _, prints := cutOutput(node.decl.Src); prints == "" {
			d.problem(paragraph, "%s has no output", node.symbol)
		}
	}
	paragraph.RemoveChild(paragraph, link) // it is no link any more
	parent := paragraph.Parent()
	parent.ReplaceChild(parent, paragraph, node)
	return true
}

// resolve finds the declaration, in this chapter's folder or, by "../04-watchcache/x.go", in another's.
func (d *document) resolve(at ast.Node, symbol, file string) *source.Decl {
	target := path.Join(d.chapter.Folder, file)
	pkg := d.editor.tree.Holding(target)
	if pkg == nil {
		pkg = d.editor.tree.In(path.Dir(target))
	}
	if pkg == nil {
		d.problem(at, "%s: there is no package in %s", symbol, path.Dir(target))
		return nil
	}
	decl, err := pkg.Find(symbol, path.Base(target))
	if err != nil {
		d.problem(at, "%w", err)
		return nil
	}
	return decl
}

// cutOutput parts the code of an Example from what it prints. What is no Example prints nothing.
func cutOutput(src string) (code, prints string) {
	before, after, ok := strings.Cut(src, "\t// Output:")
	if !ok {
		return src, ""
	}
	var out strings.Builder
	for line := range strings.Lines(after) {
		line, _ = strings.CutPrefix(strings.TrimSpace(line), "//")
		if line == "}" {
			break
		}
		out.WriteString(strings.TrimPrefix(line, " ") + "\n")
	}
	return strings.TrimRight(before, "\n"), strings.Trim(out.String(), "\n")
}

// renderExcerpt writes the declaration as a figure: where it stands, its counterpart upstream, and its lines.
func (d *document) renderExcerpt(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	excerpt := node.(*excerptNode)
	decl := excerpt.decl
	if decl == nil {
		_, _ = fmt.Fprintf(w, "<p class=\"gap\">%s is not to be found in %s.</p>\n",
			html.EscapeString(excerpt.symbol), html.EscapeString(excerpt.file))
		return ast.WalkSkipChildren, nil
	}
	src, prints := cutOutput(decl.Src)
	if excerpt.output {
		_, _ = fmt.Fprintf(w, "<details class=\"answer\"><summary>What it prints</summary>\n<pre class=\"session\" tabindex=\"0\">%s</pre>\n</details>\n", html.EscapeString(prints))
		return ast.WalkSkipChildren, nil
	}
	symbol := html.EscapeString(decl.Symbol)
	where := fmt.Sprintf("%s:%d", path.Base(decl.File.Path), decl.Line())
	href := fmt.Sprintf("%s%s#L%d", Root, decl.File.Path, decl.Line())
	_, _ = fmt.Fprintf(w, `<figure class="decl" id="%s"><figcaption><b>%s</b> <a class="where" href="%s">%s</a>%s</figcaption>`,
		symbol, symbol, html.EscapeString(href), html.EscapeString(where), upstreamHTML(decl.Notes.Upstream))
	code := d.editor.code(decl.File.Path, src, decl.From, numbered)
	d.tell(decl)
	_, _ = fmt.Fprintf(w, "<pre class=\"code\" tabindex=\"0\" aria-label=\"%s\"><code>%s</code></pre></figure>\n", symbol, code)
	return ast.WalkSkipChildren, nil
}

// tell notes which points the lines of a declaration report.
func (d *document) tell(decl *source.Decl) {
	for n := range strings.Count(decl.Src, "\n") + 1 {
		if point := d.editor.told[fmt.Sprintf("%s:%d", decl.File.Path, decl.From+n)]; point != "" {
			d.chapter.Told = append(d.chapter.Told, point)
		}
	}
}

// upstreamHTML writes where the real thing stands.
func upstreamHTML(list []source.Upstream) string {
	var out strings.Builder
	for i, upstream := range list {
		if i == 0 {
			out.WriteString(`<span class="upstream">upstream `)
		} else {
			out.WriteString(", ")
		}
		name := upstream.Symbol()
		if name == "" {
			name = path.Base(upstream.Path)
		}
		name = html.EscapeString(name)
		where := html.EscapeString(upstream.Path)
		if url := upstream.URL(); url != "" {
			_, _ = fmt.Fprintf(&out, `<a href="%s" rel="noreferrer" title="%s">%s</a>`, html.EscapeString(url), where, name)
		} else {
			_, _ = fmt.Fprintf(&out, `<span title="%s">%s</span>`, where, name)
		}
	}
	if len(list) > 0 {
		out.WriteString("</span>")
	}
	return out.String()
}
