package book

import (
	"html"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"
)

// calloutNode is a quotation whose first line is [!NOTE] or one of its kin.
type calloutNode struct {
	ast.BaseBlock
	word string // "note", "tip", "important", "warning", "caution"
}

var kindCallout = ast.NewNodeKind("Callout")

// Kind implements [ast.Node].
func (n *calloutNode) Kind() ast.NodeKind { return kindCallout }

// Dump implements [ast.Node].
func (n *calloutNode) Dump(src []byte, level int) {
	ast.DumpHelper(n, src, level, map[string]string{"word": n.word}, nil)
}

var calloutMark = regexp.MustCompile(`^\[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\]\s*$`)

// blockquote turns a marked quotation into a callout and takes the mark away.
func (d *document) blockquote(quote *ast.Blockquote) {
	first, ok := quote.FirstChild().(*ast.Paragraph)
	if !ok || first.Lines().Len() == 0 {
		return
	}
	line := first.Lines().At(0)
	match := calloutMark.FindSubmatch(line.Value(d.src))
	if match == nil {
		return
	}
	callout := &calloutNode{word: strings.ToLower(string(match[1]))}
	for inline := first.FirstChild(); inline != nil; {
		next := inline.NextSibling()
		if text, ok := inline.(*ast.Text); ok && text.Segment.Start >= line.Stop {
			break
		}
		first.RemoveChild(first, inline)
		inline = next
	}
	if !first.HasChildren() {
		quote.RemoveChild(quote, first)
	}
	for child := quote.FirstChild(); child != nil; child = quote.FirstChild() {
		callout.AppendChild(callout, child) // takes it out of quote
	}
	parent := quote.Parent()
	parent.ReplaceChild(parent, quote, callout)
}

func (d *document) renderCallout(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		_, _ = w.WriteString("</aside>\n")
		return ast.WalkContinue, nil
	}
	word := html.EscapeString(node.(*calloutNode).word)
	_, _ = w.WriteString(`<aside class="callout ` + word + `"><p class="word">` + word + "</p>\n")
	return ast.WalkContinue, nil
}
