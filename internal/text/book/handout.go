package book

import (
	"errors"
	"io/fs"
	"regexp"
	"strings"

	"listwatch/internal/text/source"
)

var workshopQuestion = regexp.MustCompile(`(?m)^- \*\*(\d[a-z])\*\* (.*)$`)

// handout makes two pages for the attendees of the half day: the drawing of ARCHITECTURE.md, and the keys and the
// numbered questions of WORKSHOP.md, with room for guesses.
func handout(_ *source.Tree, docs fs.FS) ([]byte, error) {
	architecture, noMap := fs.ReadFile(docs, "ARCHITECTURE.md")
	workshop, noPlan := fs.ReadFile(docs, "WORKSHOP.md")
	drawing := between(string(architecture), "```\n", "```\n")
	keys := between(string(workshop), "## Keys\n", "\n## ")
	text := "# List-watch on two pages\n\n```\n" + drawing + "```\n\n## Keys of the page\n" + keys + "\n---\n\n" +
		"## My guesses\n\nFirst guess, then look. [ANSWERS.md](ANSWERS.md) has the answers.\n\n" +
		"| | question | my guess |\n|---|---|---|\n" // the rule begins the second page
	for _, each := range workshopQuestion.FindAllStringSubmatch(string(workshop), -1) {
		text += "| " + each[1] + " | " + each[2] + " | |\n"
	}
	return []byte(text), errors.Join(noMap, noPlan)
}

// between returns what stands between the first start in text and the next end.
func between(text, start, end string) string {
	_, text, _ = strings.Cut(text, start)
	text, _, _ = strings.Cut(text, end)
	return text
}
