package book

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"
)

// answer begins, in bold, a quotation that is folded.
const answer = "Answer"

// callouts are the marks by which a forge makes a box of a quotation. In the book it begins with the word.
var callouts = strings.NewReplacer("\n> [!NOTE]\n", "\n> **Note.**\n", "\n> [!WARNING]\n", "\n> **Warning.**\n")

// blockquote notes on a quotation that it is an answer, and takes the mark away.
func (d *document) blockquote(quote *ast.Blockquote) {
	first, ok := quote.FirstChild().(*ast.Paragraph)
	if !ok {
		return
	}
	if bold, ok := first.FirstChild().(*ast.Emphasis); ok && bold.Level == 2 && d.text(bold) == answer {
		if behind, ok := bold.NextSibling().(*ast.Text); ok {
			behind.Segment = behind.Segment.TrimLeftSpace(d.src)
		}
		first.RemoveChild(first, bold)
		quote.SetAttributeString(answer, answer)
	}
}

func (d *document) renderQuote(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	before, after := "<blockquote>\n", "</blockquote>\n"
	if _, folded := node.AttributeString(answer); folded {
		before, after = `<details class="answer"><summary>`+answer+"</summary>\n", "</details>\n"
	}
	if !entering {
		before = after
	}
	_, _ = w.WriteString(before)
	return ast.WalkContinue, nil
}
