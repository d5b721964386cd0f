package book

import (
	"fmt"
	"go/doc"
	"go/scanner"
	"go/token"
	"html"
	"strings"
)

// code renders Go source as HTML, a span of class "l" for each line. first is the number of the first line in file, by
// which lines that report a moment are recognized; they get the class "told" and are shown quieter. Code inside prose
// is in no file, and has no numbers: first is 0. Lines of a whole file can be linked to.
func (e *editor) code(file, src string, first int, whole bool) []string {
	lines := highlight(src)
	for i, line := range strings.Split(src, "\n") {
		n := first + i
		attributes := `class="l"`
		if point := e.told[fmt.Sprintf("%s:%d", file, n)]; point != "" {
			attributes = fmt.Sprintf(`class="l told" data-point="%s"`, point)
		}
		if tabs := len(line) - len(strings.TrimLeft(line, "\t")); tabs > 0 && first > 0 && !whole {
			attributes += fmt.Sprintf(` data-tabs="%d"`, tabs) // what goes on below it begins there
		}
		if whole {
			attributes += fmt.Sprintf(` id="L%d"`, n)
		}
		if first > 0 {
			attributes += fmt.Sprintf(` data-n="%d"`, n)
		}
		lines[i] = fmt.Sprintf("<span %s>%s\n</span>", attributes, lines[i])
	}
	return lines
}

// highlight splits Go source into lines of HTML. Everything is escaped; with the tags taken out again, the lines are
// the source to the byte. Text that is not Go comes out whole, merely with less colour.
func highlight(src string) []string {
	file := token.NewFileSet().AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(file, []byte(src), func(token.Position, string) {}, scanner.ScanComments)

	var out strings.Builder
	done := 0 // src[:done] has been painted
	before := token.ILLEGAL
	method := false // between the func at the beginning of a line and the name it declares
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok == token.SEMICOLON && literal != ";" {
			continue // put in by the scanner at the end of a line
		}
		at := max(file.Offset(pos), done) // what is no UTF-8 is longer as a literal than in the source
		text := literal
		if text == "" {
			text = tok.String()
		}
		end := min(at+len(text), len(src)) // carriage returns are missing from literals: the rest comes uncoloured
		paint(&out, "", src[done:at])
		class := classOf(tok, literal, before)
		if tok == token.FUNC {
			method = at == 0 || src[at-1] == '\n'
		} else if method && tok == token.IDENT && before == token.RPAREN {
			class = "d"
		}
		method = method && class != "d" && tok != token.LBRACE
		paint(&out, class, src[at:end])
		done, before = end, tok
	}
	paint(&out, "", src[done:])
	return strings.Split(out.String(), "\n")
}

// classOf returns the CSS class of a token, "" for none. before is the token in front of it.
func classOf(tok token.Token, literal string, before token.Token) string {
	switch {
	case tok == token.COMMENT:
		return "c"
	case tok == token.STRING, tok == token.CHAR:
		return "s"
	case tok.IsKeyword():
		return "k"
	case tok.IsLiteral() && tok != token.IDENT:
		return "n"
	case tok == token.IDENT && (before == token.FUNC || before == token.TYPE):
		return "d"
	case tok == token.IDENT && before != token.PERIOD && doc.IsPredeclared(literal):
		return "b"
	}
	return ""
}

// paint writes escaped text in a span, or in one for each of its lines: no span reaches over one.
func paint(out *strings.Builder, class, text string) {
	text = html.EscapeString(text)
	if class != "" {
		begin, end := `<span class="`+class+`">`, "</span>"
		text = begin + strings.ReplaceAll(text, "\n", end+"\n"+begin) + end
	}
	out.WriteString(text)
}
