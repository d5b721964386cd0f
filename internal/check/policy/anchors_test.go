package policy

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	toAnchor = regexp.MustCompile(`\]\(([^)\s#]*)#([^)\s]+)\)`)
	boldOnce = regexp.MustCompile(`(?m)^### (.+)$`)
)

// glossary is where each term has a heading of its own.
const glossary = "docs/GLOSSARY.md"

// deadAnchors returns the links of all documents that lead to a heading that is not there. A chapter's link into the
// glossary leads to a term, not to a section of it.
func deadAnchors(repo *Repo) []Fault {
	texts, faults := repo.texts("docs/*.md", "README.md", "chapters/*/README.md")
	terms := boldOnce.FindAllString(texts[glossary], -1)
	for name, text := range texts {
		for i, line := range strings.Split(text, "\n") {
			for _, link := range toAnchor.FindAllStringSubmatch(line, -1) {
				to := name
				if link[1] != "" {
					to = path.Join(path.Dir(name), link[1])
				}
				isTerm := func(term string) bool { return hasHeading(term+"\n", link[2]) }
				switch target, known := texts[to]; {
				case !known: // elsewhere: another site, or the line of a source
				case !hasHeading(target, link[2]):
					faults = append(faults, fault(name, i+1, "%s has no heading for #%s", to, link[2]))
				case to == glossary && name != glossary && !slices.ContainsFunc(terms, isTerm):
					faults = append(faults, fault(name, i+1, "#%s is no term of the glossary", link[2]))
				}
			}
		}
	}
	return faults
}

// texts returns the files that match, by name, and those that cannot be read.
func (r *Repo) texts(patterns ...string) (map[string]string, []Fault) {
	var faults []Fault
	texts := map[string]string{}
	for _, pattern := range patterns {
		names, _ := fs.Glob(r.FS, pattern) // the patterns are well formed
		for _, name := range names {
			text, err := fs.ReadFile(r.FS, name)
			if err != nil {
				faults = append(faults, fault(name, 0, "%v", err))
				continue
			}
			texts[name] = string(text)
		}
	}
	return texts, faults
}

// hasHeading reports whether a document has the heading of an anchor; "" stands for the document itself.
func hasHeading(text, anchor string) bool {
	if anchor == "" {
		return text != ""
	}
	for line := range strings.Lines(text) {
		if heading, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && line[0] == '#' &&
			slug(heading) == anchor {
			return true
		}
	}
	return false
}

// notInSlug is what an anchor leaves out of its heading.
var notInSlug = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)

// slug returns the anchor that a forge gives a heading.
func slug(heading string) string {
	return strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), ""), " ", "-")
}
