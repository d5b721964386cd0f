package book

import (
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"
)

// answer begins, in bold, a quotation that is folded.
const answer = "Answer"

var calloutMark = regexp.MustCompile(`^\[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\]\s*$`)

// blockquote notes on a quotation that it is an answer, or which callout, and takes the mark away.
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
		quote.SetAttributeString(answer, answer)
		return
	}
	line := first.Lines().At(0)
	match := calloutMark.FindSubmatch(line.Value(d.src))
	if match == nil {
		return
	}
	quote.SetAttributeString("callout", strings.ToLower(string(match[1])))
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
}

func (d *document) renderQuote(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	before, after := "<blockquote>\n", "</blockquote>\n"
	if _, folded := node.AttributeString(answer); folded {
		before, after = `<details class="answer"><summary>`+answer+"</summary>\n", "</details>\n"
	} else if word, ok := node.AttributeString("callout"); ok {
		before = `<aside class="callout ` + word.(string) + `"><p class="word">` + word.(string) + "</p>\n"
		after = "</aside>\n"
	}
	if !entering {
		before = after
	}
	_, _ = w.WriteString(before)
	return ast.WalkContinue, nil
}
