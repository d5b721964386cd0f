package book

import (
	"html"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"
)

// calloutNode is a quotation whose first line is [!NOTE] or one of its kin, or which begins with the word "Answer" in
// bold.
type calloutNode struct {
	ast.BaseBlock
	word string // "note", "tip", "important", "warning", "caution"; answer: it is folded
}

const answer = "Answer"

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
	if bold, ok := first.FirstChild().(*ast.Emphasis); ok && bold.Level == 2 && d.text(bold) == answer {
		if behind, ok := bold.NextSibling().(*ast.Text); ok {
			behind.Segment = behind.Segment.TrimLeftSpace(d.src)
		}
		first.RemoveChild(first, bold)
		replace(quote, &calloutNode{word: answer})
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
	replace(quote, callout)
}

// replace puts a callout with all that is in a quotation in its place.
func replace(quote *ast.Blockquote, callout *calloutNode) {
	for child := quote.FirstChild(); child != nil; child = quote.FirstChild() {
		callout.AppendChild(callout, child) // takes it out of quote
	}
	parent := quote.Parent()
	parent.ReplaceChild(parent, quote, callout)
}

func (d *document) renderCallout(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	word := html.EscapeString(node.(*calloutNode).word)
	switch {
	case word == answer && entering:
		_, _ = w.WriteString(`<details class="answer"><summary>` + word + "</summary>\n")
		return ast.WalkContinue, nil
	case word == answer:
		_, _ = w.WriteString("</details>\n")
		return ast.WalkContinue, nil
	case !entering:
		_, _ = w.WriteString("</aside>\n")
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString(`<aside class="callout ` + word + `"><p class="word">` + word + "</p>\n")
	return ast.WalkContinue, nil
}
