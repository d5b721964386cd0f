package book

import (
	"regexp"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
)

// Part is a station or a queue of the stage, and the words for it in chapters. On the page, the words have the part's
// colour. The part in the mini-stage lights up while the reader points at a word.
type Part struct {
	Name        string         // the name of the station or the queue on the stage
	Kind        string         // "queue" where events wait, "kept" for stored state, "acts" for active parts
	words       *regexp.Regexp // matches the words or their plurals in prose; nil: no words
	code        string         // the name in code
	First, Last int            // the chapters in which the words mean this part, both included
}

// Parts lists the parts in the order in which mention looks for them.
var Parts = []*Part{
	{"http", "acts", words("handler"), "", 7, 9},
	{"etcd", "kept", words("etcd"), "", 1, 9},
	{"etcd3-incoming", "queue", nil, "incomingEventChan", 1, 9},
	{"etcd3-result", "queue", nil, "resultChan", 1, 9},
	{"ring", "kept", words("ring|watch cache"), "", 1, 9},
	{"incoming", "queue", nil, "incoming", 3, 9},
	{"dispatch", "acts", words("dispatcher"), "", 1, 9},
	{"watcher", "acts", words("cache watcher|watcher"), "", 5, 9},
	{"input", "queue", nil, "input", 4, 9},
	{"result", "queue", nil, "result", 4, 9},
	{"reflector", "acts", words("reflector"), "", 9, 15},
	{"fifo", "queue", words("deltafifo|realfifo|fifo"), "", 9, 15},
	{"indexer", "kept", words("indexer"), "", 9, 15},
	{"processor", "acts", words("processor"), "", 10, 15},
	{"listener", "acts", words("listener"), "", 11, 15},
	{"add", "queue", nil, "addCh", 10, 15},
	{"pending", "queue", words("ring"), "pendingNotifications", 12, 12},
	{"next", "queue", nil, "nextCh", 10, 15},
	{"handler", "acts", words("handler"), "", 10, 15},
	{"workqueue", "queue", words("workqueue"), "", 13, 15},
}

func words(singular string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:` + singular + `)s?\b`)
}

// in returns the place [from, to) at which a text first names the part, or nil. Code must equal p.code.
func (p *Part) in(written string, isCode bool) []int {
	switch {
	case isCode && written == p.code:
		return []int{0, len(written)}
	case isCode || p.words == nil:
		return nil
	}
	return p.words.FindStringIndex(written)
}

// mention wraps a link, code or words that mean a part, if they are the first in their section.
func (d *document) mention(node ast.Node) {
	if node.Parent() == nil {
		return // another node has replaced it
	}
	for above := node.Parent(); above != nil; above = above.Parent() {
		if kind := above.Kind(); kind == ast.KindHeading || kind == ast.KindLink || kind == ast.KindCodeSpan {
			return
		}
	}
	section := len(d.chapter.Contents)
	_, isLink := node.(*ast.Link)
	_, isCode := node.(*ast.CodeSpan)
	prose, isText := node.(*ast.Text)
	written := d.text(node)
	for _, part := range Parts {
		last, ever := d.mentioned[part]
		if d.chapter.Number < part.First || d.chapter.Number > part.Last || ever && last == section {
			continue
		}
		at := part.in(written, isCode)
		if at == nil || !isText && at[1]-at[0] < len(written) {
			continue
		}
		d.mentioned[part] = section
		if isText {
			node = d.split(prose, at[0], at[1])
		}
		reach := "" // only the first mention in a chapter can be reached by the keyboard
		if !ever && !isLink {
			reach = ` tabindex="0"`
		}
		above := node.Parent()
		above.InsertBefore(above, node, ready(`<span data-part="%s" data-kind="%s"%s>`, part.Name, part.Kind, reach))
		above.InsertAfter(above, node, ready("</span>"))
		return
	}
}

// split cuts words into three texts, and returns the middle one, [from, to). It looks for parts in the other two texts.
func (d *document) split(words *ast.Text, from, to int) ast.Node {
	start := words.Segment.Start
	before := ast.NewTextSegment(text.NewSegment(start, start+from))
	middle := ast.NewTextSegment(text.NewSegment(start+from, start+to))
	words.Segment = text.NewSegment(start+to, words.Segment.Stop) // the last text keeps the line's end
	parent := words.Parent()
	parent.InsertBefore(parent, words, before)
	parent.InsertBefore(parent, words, middle)
	d.mention(before)
	d.mention(words)
	return middle
}
