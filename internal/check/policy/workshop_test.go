package policy

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/observe/probe"
	"listwatch/internal/play/lab"
	"listwatch/internal/play/scenario"
)

var (
	answer = regexp.MustCompile(
		`(?m)^\*\*(\d[a-z]\. .*)\*\*\n\n- \*Often guessed:\* .+\n- \*Right:\* (?:.+\n)+?- \*Proof:\* (.+\]\(.+)$`)
	recordName = regexp.MustCompile("`([A-Z][A-Za-z0-9]+)`")
	storyName  = regexp.MustCompile(`(?:\*\*story\*\*:|(?:the|play the) story) \*([^*]+)\*`)
	labName    = regexp.MustCompile("(?:lab\\*?\\*?|start|check|hint|or) `?([a-z]+(?:-[a-z]+)+|neighbours)`?")
)

// TestTheWorkshopNamesWhatThereIs: every question has its answer with a proof and the others none; stories, labs and
// records that the pages name exist.
func TestTheWorkshopNamesWhatThereIs(t *testing.T) {
	workshop, answers := read(t, "docs", "WORKSHOP.md"), read(t, "docs", "ANSWERS.md")
	var asked, answered []string
	for _, each := range question.FindAllStringSubmatch(workshop, -1) {
		asked = append(asked, each[1]+". "+each[2])
	}
	for _, each := range answer.FindAllStringSubmatch(answers, -1) {
		answered = append(answered, each[1])
		for _, record := range recordName.FindAllStringSubmatch(each[2], -1) {
			is := func(p probe.Point) bool { return p.String() == record[1] }
			assert.True(t, slices.ContainsFunc(probe.Points(), is), "%s: there is no record %s", each[1], record[1])
		}
	}
	assert.NoDiff(t, answered, asked, "questions with answers")
	assert.Equal(t, strings.Count(answers, "*Right:*"), len(asked), "answers")
	stories, labs := storyName.FindAllStringSubmatch(workshop, -1), labName.FindAllStringSubmatch(workshop, -1)
	assert.True(t, len(asked) >= 8 && len(stories) >= 3 && len(labs) >= 3,
		"only %d questions, %d stories, %d labs are found", len(asked), len(stories), len(labs))
	for _, named := range stories {
		is := func(story scenario.Story) bool { return story.Title == named[1] }
		assert.True(t, slices.ContainsFunc(scenario.All, is), "there is no story %s", named[1])
	}
	for _, named := range labs {
		_, err := lab.ByID(named[1])
		assert.NoError(t, err)
	}
}

var (
	ourMetric   = regexp.MustCompile("`((?:apiserver|watch_cache|rest_client|informer|workqueue)_[a-z_]+)")
	otherMetric = regexp.MustCompile(`\*((?:apiserver|informer|workqueue)_[a-z_]+)`)
)

// TestSymptomsNameMetricsThatExist: in SYMPTOMS a metric stands as code if this program has it, and in italics if only
// upstream does.
func TestSymptomsNameMetricsThatExist(t *testing.T) {
	sources := read(t, "chapters", "06-cacher", "metrics.go") + read(t, "chapters", "09-listwatch", "metrics.go") +
		read(t, "internal", "server", "apiserver", "metrics.go")
	has := func(name string) bool { return strings.Contains(sources, `"`+name+`"`) }
	page := read(t, "docs", "SYMPTOMS.md")
	named := ourMetric.FindAllStringSubmatch(page, -1)
	assert.True(t, len(named) >= 10, "only %d metrics are named", len(named))
	for _, each := range named {
		assert.True(t, has(each[1]), "%s is not at /metrics", each[1])
	}
	for _, each := range otherMetric.FindAllStringSubmatch(page, -1) {
		assert.False(t, has(each[1]), "%s is at /metrics: it stands as code", each[1])
	}
}
