package docs

import (
	"regexp"
	"strconv"
	"strings"
)

// Block is a block of the half day in WORKSHOP.md: what a teacher wants in front of them while it lasts.
type Block struct {
	Title        string
	Begins, Ends int      // minutes from the beginning of the day
	Questions    []string // "4a A client opens a watch …"
	Check        string   // how to tell that it has been understood; "" if the plan does not say
	Late         string   // what to leave out first; "" if the plan does not say
}

var (
	blockHeading  = regexp.MustCompile(`(?m)^## (\d):(\d\d) · (.*) \((\d+) minutes\)$`)
	blockQuestion = regexp.MustCompile(`(?m)^- (\*\*\d[a-z]\*\* .*)$`)
	blockCheck    = regexp.MustCompile(`(?m)^\*\*Check:\*\* (.*)$`)
	blockLate     = regexp.MustCompile(`(?m)^\| late \| \| (.*) \|$`)
	markdown      = regexp.MustCompile("\\[([^]]*)\\]\\([^)]*\\)|[*`]")
)

// Plan returns the blocks of the half day in their order, as plain text.
func Plan() []Block {
	page, err := files.ReadFile("WORKSHOP.md")
	if err != nil {
		panic(err) // it is embedded
	}
	var plan []Block
	headings := blockHeading.FindAllSubmatchIndex(page, -1)
	for i, at := range headings {
		end := len(page)
		if i+1 < len(headings) {
			end = headings[i+1][0]
		}
		body, _, _ := strings.Cut(string(page[at[1]:end]), "\n## ")
		group := func(n int) string { return string(page[at[2*n]:at[2*n+1]]) }
		minutes := func(n int) int { value, _ := strconv.Atoi(group(n)); return value } // digits, by the pattern
		block := Block{Title: group(3), Begins: 60*minutes(1) + minutes(2)}
		block.Check, block.Late = first(blockCheck, body), first(blockLate, body)
		block.Ends = block.Begins + minutes(4)
		for _, match := range blockQuestion.FindAllStringSubmatch(body, -1) {
			block.Questions = append(block.Questions, markdown.ReplaceAllString(match[1], "$1"))
		}
		plan = append(plan, block)
	}
	return plan
}

func first(pattern *regexp.Regexp, text string) string {
	match := pattern.FindStringSubmatch(text)
	if match == nil {
		return ""
	}
	return markdown.ReplaceAllString(match[1], "$1")
}
