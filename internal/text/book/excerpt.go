package book

import (
	"cmp"
	"fmt"
	"html"
	"path"
	"strings"

	"github.com/yuin/goldmark/ast"

	"listwatch/internal/text/source"
)

// excerpt replaces a paragraph that asks for a declaration and reports whether it was one. It asks by a link that is
// alone in it, which on a forge leads to the file:
//
//	[Cacher.dispatchEvents](dispatch.go "code")       the declaration; an Example ends before its output
//	[Cacher](cacher.go "code incoming dispatching")   of a struct, the fields that the text has named
//	[Cacher](cacher.go "whole")                       the declaration, folded
//	[Example_block](first_try_test.go "output")       what an Example prints, folded unless an answer is around it
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
	symbol, file := d.text(link), string(link.Destination)
	decl, parts, err := d.resolve(symbol, file, how, strings.Fields(names))
	out := ""
	switch {
	case err != nil:
		d.problem(paragraph, "%w", err)
		out = fmt.Sprintf(`<p class="gap">%s is not to be found in %s.</p>`, html.EscapeString(symbol),
			html.EscapeString(file))
	case how == "output":
		out = fmt.Sprintf(`<pre class="session" tabindex="0">%s</pre>`, html.EscapeString(parts[0].Src))
		if _, around := paragraph.Parent().AttributeString(answer); !around {
			out = `<details class="answer"><summary>What it prints</summary>` + "\n" + out + "\n</details>"
		}
	default:
		out = d.figure(decl, parts)
		if how == "whole" {
			out = fmt.Sprintf(`<details class="answer"><summary>All of %s</summary>%s</details>`,
				html.EscapeString(decl.Symbol), out)
		}
	}
	paragraph.RemoveChild(paragraph, link) // it is no link any more
	block := ast.NewTextBlock()
	block.AppendChild(block, ready("%s", out))
	paragraph.Parent().ReplaceChild(paragraph.Parent(), paragraph, block)
	return true
}

// resolve finds a declaration, in this chapter's folder or, by "../04-watchcache/x.go", in another's, and the lines of
// it that are to be shown.
func (d *document) resolve(symbol, file, how string, fields []string) (*source.Decl, []source.Lines, error) {
	target := path.Join(d.chapter.Folder, file)
	pkg := d.editor.tree.Holding(target)
	if pkg == nil {
		pkg = d.editor.tree.In(path.Dir(target))
	}
	if pkg == nil {
		return nil, nil, fmt.Errorf("%s: there is no package in %s", symbol, path.Dir(target))
	}
	decl, err := pkg.Find(symbol, path.Base(target))
	if err != nil {
		return nil, nil, err
	}
	parts, err := partsOf(decl, how, fields)
	return decl, parts, err
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

// figure returns a declaration as HTML: where it stands, its counterpart upstream, and its lines.
func (d *document) figure(decl *source.Decl, parts []source.Lines) string {
	symbol := html.EscapeString(decl.Symbol)
	where := fmt.Sprintf("%s:%d", path.Base(decl.File.Path), decl.Line())
	href := fmt.Sprintf("%s%s#L%d", Root, decl.File.Path, decl.Line())
	id := fmt.Sprintf(` id="%s"`, symbol)
	if len(parts) > 1 {
		id = "" // the whole declaration has it
	}
	var code strings.Builder
	for i, part := range parts {
		if i > 0 { // lines are missing between two parts
			code.WriteString(elided)
		}
		code.WriteString(d.editor.code(decl.File.Path, part.Src, part.From, numbered))
	}
	return fmt.Sprintf(`<figure class="decl"%s><figcaption><b>%s</b> <a class="where" href="%s">%s</a>%s</figcaption>`+
		`<pre class="code" tabindex="0" aria-label="%s"><code>%s</code></pre></figure>`,
		id, symbol, html.EscapeString(href), html.EscapeString(where), upstreamHTML(decl.Notes.Upstream),
		symbol, code.String())
}

// elided stands for the fields of a struct that an excerpt leaves out.
const elided = "<span class=\"l\" data-n=\"⋮\"><span class=\"c\">\t…</span>\n</span>"

// upstreamHTML writes where the real thing stands.
func upstreamHTML(list []source.Upstream) string {
	var all []string
	for _, upstream := range list {
		name := html.EscapeString(cmp.Or(upstream.Symbol(), path.Base(upstream.Path)))
		where := html.EscapeString(upstream.Path)
		if url := upstream.URL(); url != "" {
			all = append(all, fmt.Sprintf(`<a href="%s" rel="noreferrer" title="%s">%s</a>`, html.EscapeString(url),
				where, name))
		} else {
			all = append(all, fmt.Sprintf(`<span title="%s">%s</span>`, where, name))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return `<span class="upstream">upstream ` + strings.Join(all, ", ") + "</span>"
}
