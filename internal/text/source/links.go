package source

import (
	"go/ast"
	"regexp"
	"strings"
)

// Link is a doc link in a comment: a name in brackets, a star before it allowed.
type Link struct {
	Text string // "Cacher.Watch": without brackets and star
	File *File
	Line int
}

// docLink finds bracketed names. An index expression, "events[i]", and a Markdown link, "[a](b)", are none:
// [Tree.DocLinks] looks at what stands around a match.
var docLink = regexp.MustCompile(`\[\*?([A-Za-z_]\w*(?:\.[A-Za-z_]\w*){0,2})\]`)

// DocLinks returns the doc links in all comments of the file, except in indented (preformatted) lines of comments.
func (t *Tree) DocLinks(file *File) []Link {
	var links []Link
	for _, group := range file.AST.Comments {
		for _, comment := range group.List {
			links = append(links, t.linksIn(file, comment)...)
		}
	}
	return links
}

func (t *Tree) linksIn(file *File, comment *ast.Comment) []Link {
	var links []Link
	first := t.Line(comment.Pos())
	for i, line := range strings.Split(comment.Text, "\n") {
		if preformatted(line) {
			continue
		}
		for _, at := range docLink.FindAllStringSubmatchIndex(line, -1) {
			if !stands(line, at[0], at[1]) {
				continue
			}
			links = append(links, Link{Text: line[at[2]:at[3]], File: file, Line: first + i})
		}
	}
	return links
}

// preformatted reports whether a comment line is shown as it stands: gofmt indents such lines by a tab.
func preformatted(line string) bool { return strings.HasPrefix(line, "//\t") }

// stands reports whether the match line[from:to] is a name in prose: not part of an expression, not quoted.
func stands(line string, from, to int) bool {
	if from > 0 && (wordByte(line[from-1]) || strings.IndexByte("])\"'`", line[from-1]) >= 0) {
		return false
	}
	return to == len(line) || !wordByte(line[to]) && strings.IndexByte("[(", line[to]) < 0
}

func wordByte(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}
