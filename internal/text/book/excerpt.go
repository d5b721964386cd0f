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

// An excerpt stands where prose asked for a declaration, by a link that is alone in its paragraph:
//
//	[Cacher.dispatchEvents](dispatch.go "code")       the declaration; an Example ends before its output
//	[Cacher](cacher.go "code incoming dispatching")   of a struct, the fields that the text has named
//	[Cacher](cacher.go "whole")                       the declaration, folded
//	[Example_block](first_try_test.go "output")       what an Example prints, folded unless an answer is around it
//
// On a forge it is a link to the file.
type excerptNode struct {
	ast.BaseBlock
	symbol string
	file   string       // as written
	decl   *source.Decl // nil if it does not resolve
	how    string       // "code", "whole" or "output"
	parts  []source.Lines
}

var kindExcerpt = ast.NewNodeKind("Excerpt")

// Kind implements [ast.Node].
func (n *excerptNode) Kind() ast.NodeKind { return kindExcerpt }

// Dump implements [ast.Node].
func (n *excerptNode) Dump(src []byte, level int) {
	ast.DumpHelper(n, src, level, map[string]string{"symbol": n.symbol, "file": n.file, "how": n.how}, nil)
}

// excerpt replaces a paragraph that asks for a declaration and reports whether it was one.
func (d *document) excerpt(paragraph *ast.Paragraph) bool {
	link, ok := paragraph.FirstChild().(*ast.Link)
	if !ok {
		return false
	}
	how, names, _ := strings.Cut(string(link.Title), " ")
	if how != "code" && how != "whole" && how != "output" {
		return false
	}
	if paragraph.ChildCount() != 1 {
		d.problem(paragraph, "a code link stands alone in its paragraph")
		return false
	}
	node := &excerptNode{symbol: d.text(link), file: string(link.Destination), how: how}
	node.decl = d.resolve(paragraph, node.symbol, node.file)
	if node.decl != nil {
		var err error
		if node.parts, err = partsOf(node.decl, how, strings.Fields(names)); err != nil {
			d.problem(paragraph, "%w", err)
			node.decl = nil
		}
	}
	paragraph.RemoveChild(paragraph, link) // it is no link any more
	parent := paragraph.Parent()
	parent.ReplaceChild(parent, paragraph, node)
	return true
}

// partsOf returns the lines that an excerpt shows.
func partsOf(decl *source.Decl, how string, fields []string) ([]source.Lines, error) {
	code, prints := cutOutput(decl.Src)
	switch {
	case how == "output" && prints == "":
		return nil, fmt.Errorf("%s has no output", decl.Symbol)
	case how == "output":
		return []source.Lines{{From: decl.From, Src: prints}}, nil
	case len(fields) > 0:
		return decl.Fields(fields)
	}
	return []source.Lines{{From: decl.From, Src: code}}, nil
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
	if excerpt.how == "output" {
		renderOutput(w, excerpt)
		return ast.WalkSkipChildren, nil
	}
	symbol := html.EscapeString(decl.Symbol)
	where := fmt.Sprintf("%s:%d", path.Base(decl.File.Path), decl.Line())
	href := fmt.Sprintf("%s%s#L%d", Root, decl.File.Path, decl.Line())
	id, after := fmt.Sprintf(` id="%s"`, symbol), ""
	if len(excerpt.parts) > 1 {
		id = "" // the whole declaration has it
	}
	if excerpt.how == "whole" {
		_, _ = fmt.Fprintf(w, `<details class="answer"><summary>All of %s</summary>`, symbol)
		after = "</details>"
	}
	_, _ = fmt.Fprintf(w,
		`<figure class="decl"%s><figcaption><b>%s</b> <a class="where" href="%s">%s</a>%s</figcaption>`,
		id, symbol, html.EscapeString(href), html.EscapeString(where), upstreamHTML(decl.Notes.Upstream))
	var code strings.Builder
	for i, part := range excerpt.parts {
		if i > 0 && part.From > excerpt.parts[i-1].To()+1 {
			code.WriteString(elided)
		}
		code.WriteString(d.editor.code(decl.File.Path, part.Src, part.From, numbered))
		d.tell(decl, part)
	}
	_, _ = fmt.Fprintf(w, "<pre class=\"code\" tabindex=\"0\" aria-label=\"%s\"><code>%s</code></pre></figure>%s\n",
		symbol, code.String(), after)
	return ast.WalkSkipChildren, nil
}

// elided stands for the fields of a struct that an excerpt leaves out.
const elided = "<span class=\"l\" data-n=\"⋮\"><span class=\"c\">\t…</span>\n</span>"

// renderOutput writes what an Example prints.
func renderOutput(w util.BufWriter, excerpt *excerptNode) {
	_, around := excerpt.Parent().(*calloutNode)
	if !around {
		_, _ = w.WriteString(`<details class="answer"><summary>What it prints</summary>` + "\n")
	}
	_, _ = fmt.Fprintf(w, "<pre class=\"session\" tabindex=\"0\">%s</pre>\n", html.EscapeString(excerpt.parts[0].Src))
	if !around {
		_, _ = w.WriteString("</details>\n")
	}
}

// tell notes which points the lines of a declaration report.
func (d *document) tell(decl *source.Decl, lines source.Lines) {
	for n := lines.From; n <= lines.To(); n++ {
		if point := d.editor.told[fmt.Sprintf("%s:%d", decl.File.Path, n)]; point != "" {
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
			_, _ = fmt.Fprintf(&out, `<a href="%s" rel="noreferrer" title="%s">%s</a>`, html.EscapeString(url), where,
				name)
		} else {
			_, _ = fmt.Fprintf(&out, `<span title="%s">%s</span>`, where, name)
		}
	}
	if len(list) > 0 {
		out.WriteString("</span>")
	}
	return out.String()
}
