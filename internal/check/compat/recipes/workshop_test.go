//go:build unix

package recipes

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

var (
	question = regexp.MustCompile(`(?m)^- \*\*(\d[a-z])\*\* (.*)$`)
	answer   = regexp.MustCompile(`(?m)^\*\*(\d[a-z])\.\*\* (?:.+\n)*?.*\*Proof:\*\s(?:.+\n)*?.*\]\(`)
)

// TestEveryQuestionHasItsAnswer checks that the answers have the questions' labels (1a, 1b) in the same order, and that
// there are as many proofs as questions.
func TestEveryQuestionHasItsAnswer(t *testing.T) {
	var asked, answered []string
	questions, answers, _ := strings.Cut(read(t, "docs/WORKSHOP.md"), "\n## Answers\n")
	for _, each := range question.FindAllStringSubmatch(questions, -1) {
		asked = append(asked, each[1])
	}
	for _, each := range answer.FindAllStringSubmatch(answers, -1) {
		answered = append(answered, each[1])
	}
	assert.NoDiff(t, asked, answered, "questions with answers")
	assert.Equal(t, len(asked), strings.Count(answers, "*Proof:*"), "answers")
}

// TestThePagesNameWhatThereIs checks that the metrics, points, keys, labs and stories named on the pages exist. Metrics
// in italics must not be this program's.
func TestThePagesNameWhatThereIs(t *testing.T) {
	metrics := read(t, "chapters/06-cacher/metrics.go") + read(t, "chapters/09-listwatch/metrics.go") +
		read(t, "internal/server/apiserver/apiserver.go")
	otherMetric := func(name string) bool { return !strings.Contains(metrics, `"`+name+`"`) }
	isMetric := func(name string) bool { return strings.Contains(metrics, `"`+name+`"`) }
	isPoint := func(name string) bool { _, ok := probe.PointNamed(name); return ok }
	in := func(pattern, text string) bool {
		files := require.Value(filepath.Glob(filepath.Join(root(t), pattern)))(t)
		return slices.ContainsFunc(files, func(file string) bool {
			return strings.Contains(string(require.Value(os.ReadFile(file))(t)), text)
		})
	}
	// A test in package e2e compares this list with the keys that the scripts bind.
	isKey := func(name string) bool { return in("viz/frame/dialogs.templ", `{"`+name+`", "`) }
	isLab := func(name string) bool { return in("chapters/*/labs/"+name+".txtar", "") }
	isStory := func(name string) bool {
		const stories = "internal/play/scenario/stories/*"
		return in(stories, "title: "+name+"\n") || in(stories, `title: "`+name+"\"\n")
	}
	workshop, _, _ := strings.Cut(read(t, "docs/WORKSHOP.md"), "\n## Questions that cross chapters\n")
	symptoms := read(t, "docs/SYMPTOMS.md")
	proofs := regexp.MustCompile(`(?s)\*Proof:\*.*?\n\n`).FindAllString(workshop, -1)
	for _, each := range []struct {
		page, name string // the page's text; a pattern of a name in it
		least      int    // the minimum number of names on the page
		exists     func(name string) bool
	}{
		{workshop, `(?:\*\*story\*\*:|(?:the|play the) story) \*([^*]+)\*`, 3, isStory},
		{workshop, `\| \*\*([A-Z,.?]|Space|Shift Space|PageDown)\*\* \|`, 14, isKey},
		{workshop, "(?:lab\\*?\\*?|start|check|hint|or) `?([a-z]+(?:-[a-z]+)+|neighbours)`?", 3, isLab},
		{strings.Join(proofs, "\n"), "`([A-Z][A-Za-z0-9]+)`", 10, isPoint},
		{symptoms, "`((?:apiserver|watch_cache|rest_client|informer|workqueue)_[a-z_]+)", 10, isMetric},
		{symptoms, `\*((?:apiserver|informer|workqueue)_[a-z_]+)`, 0, otherMetric},
	} {
		named := regexp.MustCompile(each.name).FindAllStringSubmatch(each.page, -1)
		assert.True(t, len(named) >= each.least, "only %d of %s are found", len(named), each.name)
		for _, match := range named {
			assert.True(t, each.exists(match[1]), "%s: there is no %s", each.name, match[1])
		}
	}
}
