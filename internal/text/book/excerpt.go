package book

import (
	"cmp"
	"fmt"
	"html"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"

	"listwatch/internal/text/source"
)

// excerpt replaces a paragraph that consists of a link to a declaration, and reports whether it did. A forge shows the
// plain link to the file. In the book, the link's title selects what replaces it:
//
//	[Cacher.dispatchEvents](dispatch.go "code")       the declaration; an Example ends before its output
//	[Cacher](cacher.go "code incoming dispatching")   the struct with only these fields
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
	out, err := d.quoted(symbol, file, how, strings.Fields(names))
	if err != nil {
		d.problem(paragraph, "%w", err)
		out = fmt.Sprintf(`<p class="gap">%s is not to be found in %s.</p>`, html.EscapeString(symbol),
			html.EscapeString(file))
	} else if how == "output" && d.answer == nil {
		out = `<details class="answer"><summary>What it prints</summary>` + "\n" + out + "\n</details>"
	}
	paragraph.RemoveChild(paragraph, link) // the methods link and mention then ignore it
	paragraph.Parent().ReplaceChild(paragraph.Parent(), paragraph, readyBlock("%s", out))
	return true
}

// quoted returns the HTML that replaces a link to a declaration. The path file is relative to the chapter's folder.
func (d *document) quoted(symbol, file, how string, fields []string) (string, error) {
	target := path.Join(d.chapter.Folder, file)
	pkg := cmp.Or(d.editor.tree.Holding(target), d.editor.tree.In(path.Dir(target)))
	if pkg == nil {
		return "", fmt.Errorf("%s: there is no package in %s", symbol, path.Dir(target))
	}
	decl, err := pkg.Find(symbol, path.Base(target))
	if err != nil {
		return "", err
	}
	code, prints := cutOutput(decl.Src)
	switch {
	case how == "output" && prints == "":
		return "", fmt.Errorf("%s has no output", symbol)
	case how == "output":
		return fmt.Sprintf(`<pre class="session" tabindex="0">%s</pre>`, html.EscapeString(prints)), nil
	case how == "whole":
		return fmt.Sprintf(`<details class="answer"><summary>All of %s</summary>%s</details>`,
			html.EscapeString(symbol), d.figure(decl, code, nil)), nil
	}
	left, err := decl.Without(fields)
	return d.figure(decl, code, left), err
}

// printed matches the beginning of a line of an Example's output, up to the text.
var printed = regexp.MustCompile(`(?m)^[ \t]*(?:// ?)?`)

// cutOutput separates the code of an Example from its output. Any other declaration has no output.
func cutOutput(src string) (code, prints string) {
	code, prints, _ = strings.Cut(src, "\t// Output:")
	prints = printed.ReplaceAllString(strings.TrimSuffix(prints, "}"), "")
	return strings.TrimRight(code, "\n"), strings.Trim(prints, "\n")
}

// figure returns a declaration as HTML: its place, its counterpart upstream, and the lines of its code, except those
// whose numbers are in left.
func (d *document) figure(decl *source.Decl, code string, left map[int]bool) string {
	symbol := html.EscapeString(decl.Symbol)
	where := fmt.Sprintf("%s:%d", path.Base(decl.File.Path), decl.Line())
	href := fmt.Sprintf("%s%s#L%d", Root, decl.File.Path, decl.Line())
	id := fmt.Sprintf(` id="%s"`, symbol)
	if len(left) > 0 {
		id = "" // the figure of the whole declaration has the id
	}
	var shown strings.Builder
	for i, line := range d.editor.code(decl.File.Path, code, decl.From, false) {
		n := decl.From + i
		switch {
		case !left[n]:
			shown.WriteString(line)
		case n > decl.Line() && !left[n-1]:
			shown.WriteString(elided)
		}
	}
	return fmt.Sprintf(`<figure class="decl"%s><figcaption><b>%s</b> <a class="where" href="%s">%s</a>%s</figcaption>`+
		`<pre class="code" tabindex="0" aria-label="%s"><code>%s</code></pre></figure>`,
		id, symbol, html.EscapeString(href), html.EscapeString(where), upstreamHTML(decl.Upstream),
		symbol, shown.String())
}

// elided replaces the fields of a struct that an excerpt omits.
const elided = "<span class=\"l\" data-n=\"⋮\"><span class=\"c\">\t…</span>\n</span>"

// upstreamHTML returns links to the upstream counterparts.
func upstreamHTML(list []source.Upstream) string {
	var all []string
	for _, upstream := range list {
		begin, end := "<span", "</span>"
		if url := upstream.URL(); url != "" {
			begin, end = fmt.Sprintf(`<a href="%s" rel="noreferrer"`, html.EscapeString(url)), "</a>"
		}
		name := html.EscapeString(cmp.Or(upstream.Symbol, path.Base(upstream.Path)))
		all = append(all, fmt.Sprintf(`%s title="%s">%s%s`, begin, html.EscapeString(upstream.Path), name, end))
	}
	if len(all) == 0 {
		return ""
	}
	return `<span class="upstream">upstream ` + strings.Join(all, ", ") + "</span>"
}

// drawing replaces an image with the content of its SVG file. A forge shows the file with its own style, in light or
// dark. In the book it has the page's colours, and a part under the pointer lights up on the stage.
func (d *document) drawing(image *ast.Image) {
	file := string(image.Destination)
	if path.Ext(file) != ".svg" {
		d.problem(image, "an image: draw it as an SVG file, or in a code fence")
		return
	}
	svg, err := fs.ReadFile(d.editor.fsys, strings.TrimPrefix(path.Join(path.Dir(d.name), file), "chapters/"))
	drawn := withoutStyle.ReplaceAllString(string(svg), "")
	if more := beyondDrawing.FindString(drawn); err == nil && more != "" {
		err = fmt.Errorf("a drawing has no %q", more)
	}
	if err != nil {
		d.problem(image, "%s: %w", file, err)
		return
	}
	image.Parent().ReplaceChild(image.Parent(), image, ready(
		`<span class="drawn" role="img" tabindex="0" aria-label="%s">%s</span>`,
		html.EscapeString(d.text(image)), drawn))
}

// withoutStyle matches the parts that only a forge needs: the style, and a background.
var withoutStyle = regexp.MustCompile(`(?s)<style>.*?</style>\s*|<rect class="ground"[^>]*/>\s*`)

// beyondDrawing matches markup that a drawing must not have: most of it violates the page's Content-Security-Policy.
var beyondDrawing = regexp.MustCompile(`(?i)<(script|style|image|a|use|foreignObject)\b|\s(style|href|on\w+)=`)
