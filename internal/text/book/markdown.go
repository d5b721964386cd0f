package book

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// newMarkdown sets goldmark up for one document: tables, bare links, headings with anchors, and d's own changes to the
// parsed tree and to fenced blocks. goldmark drops raw HTML by default.
func newMarkdown(d *document) goldmark.Markdown {
	return goldmark.New(
		goldmark.WithExtensions(
			// The page's Content-Security-Policy would refuse a style attribute.
			extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
			extension.Linkify,
		),
		goldmark.WithParserOptions(
			parser.WithAutoHeadingID(),
			parser.WithASTTransformers(util.Prioritized(d, 500)),
		),
		goldmark.WithRendererOptions(
			renderer.WithNodeRenderers(util.Prioritized(d, 100)),
		),
	)
}

// document is one Markdown file that becomes a page. It is goldmark's transformer, and its renderer of fenced blocks.
type document struct {
	editor  *editor
	chapter *Chapter
	name    string // the path from the root of the repository
	src     []byte

	mentioned map[*Part]int   // number of the last section that mentions each part; 0: before the first heading
	named     map[string]bool // the ids of rows and questions
	answer    ast.Node        // the line that begins the answer around the current node; nil: there is none
}

// renamed has the old ids of headings, by their present ids. Each heading keeps its old id, for old links.
var renamed = map[string]string{
	"a-deleted-object-is-back":                     "a-deleted-object-is-there-again",
	"a-new-handler":                                "a-handler-comes",
	"add-a-debugger-recipe":                        "add-a-recipe-of-the-debugger",
	"again-after-a-failure":                        "again",
	"errors-name-keys-statuses-name-resources":     "errors-speak-of-keys-statuses-speak-of-resources",
	"following-a-watch":                            "following",
	"how-a-watch-ends":                             "ending",
	"how-long-a-watch-stays-open":                  "how-long",
	"in-tests-time-stands-still":                   "time-stands-still-where-the-tests-are",
	"later-requeue-after-a-delay":                  "later",
	"my-controller-misses-its-own-write":           "my-controller-reads-its-own-write",
	"several-servers-and-your-own-write":           "several-servers-and-ones-own-write",
	"wait-for-your-own-write":                      "wait-for-ones-own-write",
	"waiting-for-the-sync":                         "waiting",
	"what-did-a-controller-miss-while-it-was-down": "what-does-a-controller-miss-while-it-was-down",
	"what-else-upstream-does":                      "what-upstream-does-more",
	"when-versions-go-backwards":                   "when-versions-go-back",
}

var headingTag = regexp.MustCompile(`<h[23] id="([^"]+)"`)

// render renders Markdown into the chapter's Title, Question, Contents and HTML. name is the file's path.
func (e *editor) render(chapter *Chapter, name string, src []byte) {
	src = []byte(callouts.Replace(string(src)))
	src = made.ReplaceAllFunc(src, func(part []byte) []byte { // blank lines, so that later lines keep their numbers
		return bytes.Repeat([]byte("\n"), bytes.Count(part, []byte("\n")))
	})
	d := &document{editor: e, chapter: chapter, name: name, src: src, mentioned: make(map[*Part]int),
		named: make(map[string]bool)}
	var out bytes.Buffer
	if err := newMarkdown(d).Convert(src, &out); err != nil {
		e.problem(name, 0, "render: %w", err)
		return
	}
	chapter.HTML = headingTag.ReplaceAllStringFunc(out.String(), func(tag string) string {
		if old := renamed[headingTag.FindStringSubmatch(tag)[1]]; old != "" {
			return `<a id="` + old + `"></a>` + tag
		}
		return tag
	})
}

// Transform implements goldmark's transformer: goldmark calls it with the parsed document. It notes the parts that the
// page needs (sections, the question), and replaces the parts that the book shows in another way than a forge.
func (d *document) Transform(root *ast.Document, _ text.Reader, _ parser.Context) {
	var nodes []ast.Node // collected first, because the tree must not change during the walk
	_ = ast.Walk(root, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			nodes = append(nodes, node)
		}
		return ast.WalkContinue, nil
	})
	for _, node := range nodes {
		switch node := node.(type) {
		case *ast.Heading:
			d.heading(node)
		case *ast.Paragraph:
			d.paragraph(node)
		case *tables.TableRow:
			d.label(node, node.FirstChild())
		case *ast.Link:
			d.link(node)
			d.mention(node)
		case *ast.Text, *ast.CodeSpan:
			d.mention(node)
		case *ast.Image:
			d.drawing(node)
		case *ast.HTMLBlock:
			d.htmlBlock(node)
		case *ast.RawHTML:
			d.problem(node, "raw HTML is dropped")
		}
	}
	if d.answer != nil {
		d.problem(d.answer, "the answer has no end")
	}
}

// heading saves and removes the title, which the page shows itself, and notes the headings of levels 2 and 3.
func (d *document) heading(node *ast.Heading) {
	if node.Level == 1 {
		title := d.text(node) // "06 · Cacher"
		if _, words, numbered := strings.Cut(title, " · "); numbered {
			title = words
		}
		d.chapter.Title = cmp.Or(d.chapter.Title, title)
		node.Parent().RemoveChild(node.Parent(), node)
		return
	}
	if node.Level > 3 {
		return
	}
	id, _ := node.AttributeString("id")
	name, _ := id.([]byte)
	d.chapter.Contents = append(d.chapter.Contents, Heading{Level: node.Level, ID: string(name), Text: d.text(node)})
}

// paragraph handles excerpts, gives each question an id, and saves the question with which the chapter begins.
func (d *document) paragraph(node *ast.Paragraph) {
	if d.excerpt(node) {
		return
	}
	if words, ok := node.FirstChild().(*ast.Emphasis); ok && words.Level == 2 && node.ChildCount() == 1 {
		d.label(node, words) // a question
	}
	sections := d.chapter.Contents
	if d.chapter.Question == "" && len(sections) > 0 && sections[len(sections)-1].Text == "The question" {
		d.chapter.Question = d.text(node)
	}
}

// notInID matches characters that an id may not contain.
var notInID = regexp.MustCompile(`[^a-z0-9]+`)

// label gives a row or a question an id, made of its first words, so that a search can lead to it.
func (d *document) label(node, words ast.Node) {
	id := notInID.ReplaceAllString(strings.ToLower(d.text(words)), "-")
	id = "at-" + strings.Trim(id[:min(len(id), 40)], "-")
	for n := 2; d.named[id]; n++ {
		id = fmt.Sprintf("%s-%d", strings.TrimSuffix(id, fmt.Sprintf("-%d", n-1)), n)
	}
	d.named[id] = true
	node.SetAttributeString("id", []byte(id))
}

// ready returns a node of HTML that goldmark writes as it is, and that [document.text] ignores.
func ready(format string, args ...any) *ast.String {
	node := ast.NewString(fmt.Appendf(nil, format, args...))
	node.SetCode(true) // goldmark then neither escapes the text nor resolves entities
	return node
}

// readyBlock returns a block with HTML that goldmark writes as it is.
func readyBlock(format string, args ...any) *ast.TextBlock {
	block := ast.NewTextBlock()
	block.AppendChild(block, ready(format, args...))
	return block
}

// text returns the words of a node without their markup.
func (d *document) text(node ast.Node) string {
	if node, ok := node.(*ast.Text); ok {
		words := string(node.Value(d.src))
		if node.SoftLineBreak() {
			words += " "
		}
		return words
	}
	var out strings.Builder
	for child := node.FirstChild(); child != nil; child = child.NextSibling() {
		out.WriteString(d.text(child))
	}
	return out.String()
}

// problem reports a problem with a node, at the node's line.
func (d *document) problem(node ast.Node, format string, args ...any) {
	line := bytes.Count(d.src[:node.Pos()], []byte("\n")) + 1
	d.editor.problem(d.name, line, format, args...)
}

// RegisterFuncs implements goldmark's node renderer: document itself renders only fenced blocks.
func (d *document) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindFencedCodeBlock, d.renderFence)
}

// renderFence renders a fenced block: Go in colour, a shell session with its commands marked, any other as a drawing.
func (d *document) renderFence(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	fence := node.(*ast.FencedCodeBlock)
	content := strings.TrimSuffix(string(fence.Lines().Value(d.src)), "\n")
	switch language := string(fence.Language(d.src)); language {
	case "go":
		content = strings.Join(d.editor.code("", content, 0, false), "")
		_, _ = w.WriteString(`<pre class="code" tabindex="0"><code>` + content + "</code></pre>\n")
	case "sh", "shell", "console", "bash":
		content = prompt.ReplaceAllString(html.EscapeString(content), `<span class="prompt">$0</span>`)
		_, _ = w.WriteString(`<pre class="session" tabindex="0"><code>` + content + "</code></pre>\n")
	default:
		_, _ = w.WriteString(`<pre class="drawing" tabindex="0">` + html.EscapeString(content) + "</pre>\n")
	}
	return ast.WalkSkipChildren, nil
}

// prompt matches a prompt and its command in a shell session; the page shows both in a stronger colour than output. A
// session without a prompt consists of commands.
var prompt = regexp.MustCompile(`(?m)^\$ .*$`)

// callouts replaces the marks of a forge's callouts with words.
var callouts = strings.NewReplacer("\n> [!NOTE]\n", "\n> **Note.**\n", "\n> [!WARNING]\n", "\n> **Warning.**\n")

// made matches the code, the output or the link to the next chapter that "make generate" inserts for readers on a
// forge. The book removes it, because its own page has all three.
var made = regexp.MustCompile(`\n<!-- made -->\n(?s:.*?)\n<!-- end -->\n`)

// htmlBlock handles the two lines around an answer, which a forge folds, too. It reports other raw HTML but comments.
func (d *document) htmlBlock(block *ast.HTMLBlock) {
	line := strings.TrimSpace(string(block.Lines().Value(d.src)))
	parent := block.Parent()
	outside := parent.Kind() == ast.KindDocument // whether the block is outside lists and quotations
	switch {
	case line == "<details><summary>Answer</summary>" && outside && d.answer == nil:
		d.answer = block
		parent.ReplaceChild(parent, block, readyBlock(`<details class="answer"><summary>Answer</summary>`))
	case line == "</details>" && outside && d.answer != nil:
		d.answer = nil
		parent.ReplaceChild(parent, block, readyBlock("</details>"))
	case !strings.HasPrefix(line, "<!--"):
		d.problem(block, "raw HTML is dropped")
	}
}
