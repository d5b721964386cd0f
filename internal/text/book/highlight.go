package book

import (
	"fmt"
	"go/doc"
	"go/scanner"
	"go/token"
	"html"
	"io/fs"
	"path"
	"strings"

	"listwatch/internal/text/source"
)

// code renders Go source as HTML, a span of class "l" for each line. first is the number of src's first line in file:
// with it, code recognizes lines that report a moment, and gives them the class "told", which the page shows in paler
// colours. Code in prose belongs to no file and has no numbers; its first is 0. whole gives each line an anchor.
func (e *editor) code(file, src string, first int, whole bool) []string {
	lines := highlight(src)
	for i, line := range strings.Split(src, "\n") {
		n := first + i
		attributes := `class="l"`
		if point := e.told[fmt.Sprintf("%s:%d", file, n)]; point != "" {
			attributes = fmt.Sprintf(`class="l told" data-point="%s"`, point)
		}
		if tabs := len(line) - len(strings.TrimLeft(line, "\t")); tabs > 0 && first > 0 && !whole {
			attributes += fmt.Sprintf(` data-tabs="%d"`, tabs) // the page indents the rest of a wrapped line as far
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

// highlight splits Go source into lines of HTML. It escapes everything; without tags and escapes, the lines equal the
// source byte for byte. Text that is not Go is complete, too, but with less colour.
func highlight(src string) []string {
	file := token.NewFileSet().AddFile("", -1, len(src))
	var s scanner.Scanner
	s.Init(file, []byte(src), func(token.Position, string) {}, scanner.ScanComments)

	var out strings.Builder
	done := 0 // src[:done] has been painted
	before := token.ILLEGAL
	method := false // whether s is between a func at the beginning of a line and the name that it declares
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok == token.SEMICOLON && literal != ";" {
			continue // the scanner adds such a token at the end of a line
		}
		at := max(file.Offset(pos), done) // invalid UTF-8 is longer in a literal than in the source
		text := literal
		if text == "" {
			text = tok.String()
		}
		end := min(at+len(text), len(src)) // a literal lacks carriage returns, so its tail may get no colour
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

// classOf returns the CSS class of a token, or "" for none. before is the previous token.
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

// paint escapes a text, and writes it in a span of the class, if any. Each line of the text gets a span of its own.
func paint(out *strings.Builder, class, text string) {
	text = html.EscapeString(text)
	if class != "" {
		begin, end := `<span class="`+class+`">`, "</span>"
		text = begin + strings.ReplaceAll(text, "\n", end+"\n"+begin) + end
	}
	out.WriteString(text)
}

// Site is a declaration that reports points. The page shows it next to the picture.
type Site struct {
	*source.Decl
	Lines  []string       // highlighted HTML; the first line has the number From; needs no escaping
	Points map[int]string // the reported points, by line number
}

// LineOf returns the line that reports a point, or 0 if none does.
func (s *Site) LineOf(point string) int {
	for line, reported := range s.Points {
		if reported == point {
			return line
		}
	}
	return 0
}

// Sites returns, by the name of each point, the declaration that reports the point in the sources of fsys, which is
// laid out as [chapters.FS]. Several points may share a declaration.
func Sites(fsys fs.FS) (map[string]*Site, error) {
	tree, err := source.Parse(fsys)
	if err != nil {
		return nil, err
	}
	sites := make(map[string]*Site)
	byDecl := make(map[*source.Decl]*Site)
	for _, mention := range tree.Mentions(isPoint) {
		decl, err := mention.Package.Find(mention.Function, path.Base(mention.File.Path))
		if mention.Method == "" || err != nil {
			continue // not a report, or a report outside any function: the policy tests reject both
		}
		if byDecl[decl] == nil {
			byDecl[decl] = &Site{decl, highlight(strings.TrimSuffix(decl.Src, "\n")), make(map[int]string)}
		}
		byDecl[decl].Points[mention.Line] = mention.Point
		sites[mention.Point] = byDecl[decl]
	}
	return sites, nil
}
