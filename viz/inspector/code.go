package inspector

import (
	"context"
	"fmt"
	"sync"

	"github.com/a-h/templ"

	"listwatch/chapters"
	"listwatch/internal/observe/probe"
	"listwatch/internal/text/book"
)

// sites returns the declarations that report, by point. They are taken from the embedded sources when first asked for:
// that takes some tens of milliseconds, which the start of the program can do without.
var sites = sync.OnceValues(func() (map[string]*book.Site, error) { return book.Sites(chapters.FS()) })

func (i *Inspector) partWhat(_ context.Context, p *part) (templ.Component, error) {
	return partWhatLeaf(p, p.text()), nil
}

// codeView is the code leaf: one declaration, and the others of the part.
type codeView struct {
	*book.Site
	Point string       // the lit one
	Fact  string       // what is true there
	At    int          // its line
	Sites []*book.Site // of the part, in path order, each once
	First map[*book.Site]string
}

// partCode shows the declaration that reports a point: the one that is asked for, wherever it is reported, or else the
// first one of the part.
func (i *Inspector) partCode(_ context.Context, p *part) (templ.Component, error) {
	sites, err := sites()
	if err != nil {
		return nil, err
	}
	view := codeView{Point: p.Point}
	view.Sites, view.First = p.sitesIn(sites)
	view.Site = sites[view.Point]
	if view.Site == nil && len(view.Sites) > 0 { // none is asked for, or one that no chapter reports
		view.Site = view.Sites[0]
		view.Point = view.First[view.Site]
	}
	if view.Site == nil {
		return partNoCode(p), nil
	}
	view.At = view.LineOf(view.Point)
	if point, ok := probe.PointNamed(view.Point); ok {
		view.Fact = point.Info().Fact
	}
	return partCodeLeaf(p, view), nil
}

// sitesIn returns the declarations that report the part's points, in path order, each with the first of these points.
func (p *part) sitesIn(sites map[string]*book.Site) (list []*book.Site, first map[*book.Site]string) {
	first = map[*book.Site]string{}
	for _, info := range p.points() {
		if site := sites[info.Name]; site != nil && first[site] == "" {
			first[site] = info.Name
			list = append(list, site)
		}
	}
	return list, first
}

// breakAt is how one debugger is told to stop at a line.
type breakAt struct{ In, Text, Where string }

// breaksAt returns the ways to stop at a line, which docs/DEBUGGING.md explains. The line follows the first colon.
func breaksAt(file string, line int) []breakAt {
	at := fmt.Sprintf("%s:%d", file, line)
	return []breakAt{
		{"dlv", "break " + at, ", at delve's prompt"},
		{"VS Code", at, ", as a function breakpoint"},
		{"GoLand", at, ", in Go to File (Ctrl+Shift+N), then Ctrl+F8"},
	}
}
