package inspector

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/a-h/templ"

	"listwatch/chapters"
	"listwatch/internal/observe/probe"
	"listwatch/internal/play/wiretap"
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
	Point string                // the lit one
	Fact  string                // what is true there
	At    int                   // its line
	Sites []*book.Site          // that report points of the part, in path order
	First map[*book.Site]string // of these points, by site
}

// partCode shows the declaration that reports a point: the one that is asked for, wherever it is reported, or else the
// first one of the part.
func (i *Inspector) partCode(_ context.Context, p *part) (templ.Component, error) {
	sites, err := sites()
	if err != nil {
		return nil, err
	}
	view := codeView{Point: p.Point, First: map[*book.Site]string{}}
	for _, info := range p.points() {
		if site := sites[info.Name]; site != nil && view.First[site] == "" {
			view.First[site] = info.Name
			view.Sites = append(view.Sites, site)
		}
	}
	if sites[view.Point] == nil && len(view.Sites) > 0 { // none is asked for, or one that no chapter reports
		view.Point = view.First[view.Sites[0]]
	}
	if view.Site = sites[view.Point]; view.Site == nil {
		return partNoCode(p), nil
	}
	view.At = view.LineOf(view.Point)
	point, _ := probe.PointNamed(view.Point) // it is one
	view.Fact = point.Info().Fact
	return partCodeLeaf(p, view), nil
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

// historyRows is how many records the history leaf shows.
const historyRows = 80

func (i *Inspector) partHistory(_ context.Context, p *part) (templ.Component, error) {
	names, query := i.Log.Names(), strings.ToLower(p.Query)
	recalls := func(r *probe.Record) bool {
		return p.matches(r) && (query == "" ||
			strings.Contains(strings.ToLower(names.Sentence(r)+" "+r.Point.String()), query))
	}
	return partHistoryLeaf(p, i.recent(p.Until, historyRows, recalls), names), nil
}

// recent returns the newest n records up to seq that match, newest first.
func (i *Inspector) recent(seq uint64, n int, match func(*probe.Record) bool) []probe.Record {
	var found []probe.Record
	log := i.Log
	for r := range log.Between(log.Oldest()-1, seq) {
		if !match(r) {
			continue
		}
		if found = append(found, *r); len(found) == 2*n {
			found = slices.Delete(found, 0, n)
		}
	}
	found = found[max(0, len(found)-n):]
	slices.Reverse(found)
	return found
}

// clock writes a time since the log was made as the timeline does.
func clockText(t time.Duration) string {
	return fmt.Sprintf("%d:%06.3f", int(t.Minutes()), (t % time.Minute).Seconds())
}

// shownChunks is how many of the newest chunks of a stream the leaf shows, and shownData how much of the data of each.
const (
	shownChunks = 4
	shownData   = 420
)

// partBytes shows the open watches of the client half as they are on the wire, this moment: of the part's watcher, or
// all.
func (i *Inspector) partBytes(ctx context.Context, p *part) (templ.Component, error) {
	if i.Wire == nil {
		return partBytesLeaf(p, nil,
			"Nothing is running: this page shows a log, and the log does not hold the bytes."), nil
	}
	watcher := ""
	if p.Station == probe.Watcher {
		watcher = p.Subject
	}
	streams, err := i.streams(ctx, p.Resource, watcher)
	if err != nil {
		return nil, err
	}
	why := ""
	if len(streams) == 0 {
		why = "No stream of this program's own clients. This page does not see the streams of other programs."
	}
	return partBytesLeaf(p, streams, why), nil
}

// newest returns the chunks that are shown, oldest first.
func newest(chunks []wiretap.Chunk) []wiretap.Chunk { return chunks[max(0, len(chunks)-shownChunks):] }

// shown returns the beginning of the data of a chunk, and how many bytes are left out.
func shown(c wiretap.Chunk) (data string, left int) {
	data = strings.TrimSuffix(c.Data, "\n")
	if len(data) > shownData {
		data = strings.ToValidUTF8(data[:shownData], "")
	}
	left = c.Size - len(data)
	if strings.HasSuffix(c.Data, "\n") && left > 0 && len(data)+1 == len(c.Data) {
		left-- // the line end is shown as a sign
	}
	return data, left
}
