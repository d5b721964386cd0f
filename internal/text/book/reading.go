package book

import (
	"strings"
	"time"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
)

// Reading is what a chapter asks of its reader. Declarations that are folded do not count.
type Reading struct {
	Words     int // of prose, tables and answers
	Comments  int // words in the comments of excerpts
	Code      int // lines of excerpts that hold code
	Exercises int // questions with a folded answer, and shell sessions
}

// Speeds of a reader who wants to understand.
const (
	proseAMinute   = 220 // words
	commentsPerMin = 180 // words
	codePerMin     = 12  // lines
	exerciseTakes  = 2 * time.Minute
)

// Time returns how long the chapter takes, with its exercises.
func (r Reading) Time() time.Duration {
	minutes := float64(r.Words)/proseAMinute + float64(r.Comments)/commentsPerMin + float64(r.Code)/codePerMin
	return time.Duration(minutes*float64(time.Minute)) + time.Duration(r.Exercises)*exerciseTakes
}

// readingOf counts what stands in a document, whose excerpts have taken their places.
func (d *document) readingOf(root ast.Node) Reading {
	var r Reading
	_ = ast.Walk(root, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch node := node.(type) {
		case *ast.Paragraph, *ast.TextBlock, *ast.Heading, *east.TableCell:
			r.Words += len(strings.Fields(d.text(node)))
			return ast.WalkSkipChildren, nil
		case *ast.FencedCodeBlock:
			switch string(node.Language(d.src)) {
			case "console":
				r.Exercises++
			case "go":
				r.addCode(string(node.Lines().Value(d.src)))
			}
		case *calloutNode:
			if node.word == answer {
				r.Exercises++
			}
		case *excerptNode:
			if node.how == "code" {
				for _, part := range node.parts {
					r.addCode(part.Src)
				}
			}
		}
		return ast.WalkContinue, nil
	})
	return r
}

// addCode counts lines of Go.
func (r *Reading) addCode(src string) {
	for line := range strings.Lines(src) {
		code, comment, _ := strings.Cut(line, "//")
		r.Comments += len(strings.Fields(comment))
		if strings.TrimSpace(code) != "" {
			r.Code++
		}
	}
}
