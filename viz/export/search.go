package export

import (
	"fmt"
	"html"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// found is one place that a search can lead to: its address from the root, its page, its heading ("": the page's
// beginning), and its words.
type found [4]string

var (
	title   = regexp.MustCompile(`<title>(.*?)(?: · listwatch)?</title>`)
	prose   = regexp.MustCompile(`(?s)<article>(.*)</article>`)
	heading = regexp.MustCompile(`(?s)<h[23] id="([^"]*)">(.*?)</h[23]>`)
	line    = regexp.MustCompile(
		`(?m)<span class="l" id="(L\d+)"[^>]*>((?:<span class="k">)?(?:func|type|const|var)\b.*)$`)
	block = regexp.MustCompile(`</?(?:p|li|td|th|tr|pre|figcaption|h4|br|b|a)\b[^>]*>`)
	tag   = regexp.MustCompile(`<[^>]*>`)
	space = regexp.MustCompile(`\s+`)
)

// index lists what can be found: each section of a chapter and of a document, each declaration of a source file, each
// beat of a story.
func (s *site) index() []found {
	var all []found
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		if path.Ext(name) != ".html" || name == "index.html" {
			continue
		}
		page := string(s.files[name])
		called := title.FindStringSubmatch(page)
		if match := prose.FindStringSubmatch(page); match != nil {
			all = append(all, sections(name, html.UnescapeString(called[1]), match[1])...)
		}
		file := strings.TrimSuffix(strings.TrimPrefix(name, "book/"), ".html")
		for _, match := range line.FindAllStringSubmatch(page, -1) {
			all = append(all, found{name + "#" + match[1], file, strings.TrimSuffix(words(match[2]), " {"), ""})
		}
	}
	for _, story := range s.offered {
		for i, beat := range story.Beats {
			text := beat.Say
			if i == 0 {
				text = story.Symptom + " " + text
			}
			if q := beat.Question; q != nil {
				text += " " + q.Ask + " " + strings.Join(q.Answers, " ")
			}
			at := fmt.Sprintf("index.html?story=%s&beat=%d", story.ID, i+1)
			all = append(all, found{at, "Story: " + story.Title, fmt.Sprint("Beat ", i+1), text})
		}
	}
	return all
}

// sections cuts the prose of a page at its headings.
func sections(name, page, text string) []found {
	var all []found
	at, where, called := 0, name, ""
	for _, match := range append(heading.FindAllStringSubmatchIndex(text, -1), nil) {
		end := len(text)
		if match != nil {
			end = match[0]
		}
		if piece := words(text[at:end]); piece != "" || called != "" {
			all = append(all, found{where, page, called, piece})
		}
		if match != nil {
			at, where, called = match[1], name+"#"+text[match[2]:match[3]], words(text[match[4]:match[5]])
		}
	}
	return all
}

// words returns what stands in a piece of HTML.
func words(piece string) string {
	text := tag.ReplaceAllString(block.ReplaceAllString(piece, " "), "")
	return strings.TrimSpace(space.ReplaceAllString(html.UnescapeString(text), " "))
}
