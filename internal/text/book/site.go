package book

import (
	"io/fs"
	"path"
	"strings"

	"listwatch/internal/text/source"
)

// Site is a declaration in which moments are reported, as the page shows it next to the picture.
type Site struct {
	*source.Decl
	Lines  []string       // from From on, highlighted; safe to be shown as they are
	Points map[int]string // by line number: the point that is reported there
}

// LineOf returns the line that reports a point, 0 if none does.
func (s *Site) LineOf(point string) int {
	for line, reported := range s.Points {
		if reported == point {
			return line
		}
	}
	return 0
}

// Sites returns, by the name of the point, the declaration that reports it in the sources of fsys, which is laid out as
// [chapters.FS]. Several points may share one.
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
			continue // a mention, or a report outside of any function: the policy tests complain about it
		}
		if byDecl[decl] == nil {
			byDecl[decl] = &Site{decl, highlight(strings.TrimSuffix(decl.Src, "\n")), make(map[int]string)}
		}
		byDecl[decl].Points[mention.Line] = mention.Point
		sites[mention.Point] = byDecl[decl]
	}
	return sites, nil
}
