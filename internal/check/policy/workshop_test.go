package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/play/lab"
	"listwatch/internal/play/scenario"
)

const (
	halfDay = 210
	oneHour = 60
	fullDay = 420
)

var (
	blockHeading = regexp.MustCompile(`(?m)^## (\d):(\d\d) · (.*) \((\d+) minutes\)$`)
	mustRow      = regexp.MustCompile(`(?m)^\| (?:must|slack) \| (\d+) \|`)
	minutesRow   = regexp.MustCompile(`(?m)^\| (\d+) \|`)
	question     = regexp.MustCompile(`(?m)^- \*\*(\d[a-z])\*\* (.*)$`)
	answer       = regexp.MustCompile(
		`(?m)^\*\*(\d[a-z])\. (.*)\*\*\n\n- \*Often guessed:\* .+\n- \*Right:\* (?:.+\n)+?- \*Proof:\* (.+)$`)
	storyName  = regexp.MustCompile(`(?:\*\*story\*\*:|(?:the|play the) story) \*([^*]+)\*`)
	labName    = regexp.MustCompile("(?:lab\\*?\\*?|start|check|hint|or) `?([a-z]+(?:-[a-z]+)+|neighbours)`?")
	recordName = regexp.MustCompile("`([A-Z][A-Za-z0-9]+)`")
)

// number is the value of digits that a pattern has matched.
func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

func sumOf(rows *regexp.Regexp, text string) (sum int) {
	for _, row := range rows.FindAllStringSubmatch(text, -1) {
		sum += number(row[1])
	}
	return sum
}

// section returns what stands below a heading of the second level.
func section(text, heading string) string {
	_, text, _ = strings.Cut(text, "\n## "+heading+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// clockFaults says where the plan's times do not add up.
func clockFaults(page string) (faults []string) {
	blocks := blockHeading.FindAllStringSubmatchIndex(page, -1)
	at := 0
	for i, block := range blocks {
		part := func(n int) string { return page[block[2*n]:block[2*n+1]] }
		body := page[block[1]:]
		if i+1 < len(blocks) {
			body = page[block[1]:blocks[i+1][0]]
		} else {
			body, _, _ = strings.Cut(body, "\n## ")
		}
		if begins := 60*number(part(1)) + number(part(2)); begins != at {
			faults = append(faults, fmt.Sprintf("%s begins at minute %d, and those before it end at %d", part(3),
				begins, at))
		}
		if must := sumOf(mustRow, body); must != number(part(4)) {
			faults = append(faults, fmt.Sprintf("%s takes %s minutes, and what must be done in it %d", part(3),
				part(4), must))
		}
		if number(part(4)) > 15 && (!strings.Contains(body, "\n| slack |") || !strings.Contains(body, "\n| late |")) {
			faults = append(faults, part(3)+" has no slack, or does not say what to drop")
		}
		at += number(part(4))
	}
	for _, plan := range []struct {
		name      string
		got, want int
	}{
		{"the half day", at, halfDay},
		{"one hour", sumOf(minutesRow, section(page, "With one hour")), oneHour},
		{"the full day", sumOf(minutesRow, section(page, "With a full day")), fullDay},
	} {
		if plan.got != plan.want {
			faults = append(faults, fmt.Sprintf("%s has %d minutes, want %d", plan.name, plan.got, plan.want))
		}
	}
	return faults
}

// answerFaults says which question has no answer with a proof, and which answer belongs to no question.
func answerFaults(workshop, answers string) (faults []string) {
	given := map[string]string{}
	for _, each := range answer.FindAllStringSubmatch(answers, -1) {
		given[each[1]+" "+each[2]] = each[3]
	}
	asked := question.FindAllStringSubmatch(workshop, -1)
	for _, each := range asked {
		proof, found := given[each[1]+" "+each[2]]
		if !found {
			faults = append(faults, "no answer to "+each[1])
			continue
		}
		if !strings.Contains(proof, "](") {
			faults = append(faults, each[1]+": the proof leads nowhere")
		}
		for _, record := range recordName.FindAllStringSubmatch(proof, -1) {
			if !slices.ContainsFunc(probe.Points(), func(p probe.Point) bool { return p.String() == record[1] }) {
				faults = append(faults, each[1]+": there is no record "+record[1])
			}
		}
	}
	if n := strings.Count(answers, "*Right:*"); n != len(asked) {
		faults = append(faults, fmt.Sprintf("%d answers to %d questions", n, len(asked)))
	}
	return faults
}

// nameFaults says which stories and labs that the plan names do not exist.
func nameFaults(page string) (faults []string) {
	for _, match := range storyName.FindAllStringSubmatch(page, -1) {
		if !slices.ContainsFunc(scenario.All, func(each scenario.Story) bool { return each.Title == match[1] }) {
			faults = append(faults, "there is no story "+match[1])
		}
	}
	for _, match := range labName.FindAllStringSubmatch(page, -1) {
		if _, err := lab.ByID(match[1]); err != nil {
			faults = append(faults, err.Error())
		}
	}
	return faults
}

func TestTheHalfDayHoldsTogether(t *testing.T) {
	workshop, answers := read(t, filepath.Join(root, "docs", "WORKSHOP.md")), read(t, filepath.Join(root, "docs",
		"ANSWERS.md"))
	got := len(blockHeading.FindAllString(workshop, -1))
	require.True(t, got >= 8, "got %d blocks", got)
	faults := slices.Concat(clockFaults(workshop), answerFaults(workshop, answers), nameFaults(workshop))
	for _, each := range faults {
		t.Error(each)
	}
	for name, seed := range map[string]struct {
		old, new string // in WORKSHOP.md
		want     string
	}{
		"a block too long": {"(45 minutes)", "(50 minutes)", "One stream, a thousand watchers takes 50 minutes, " +
			"and what must be done in it 45"},
		"a block without slack": {"| slack | 7 |", "| must | 7 |", "One stream, a thousand watchers has no slack, or " +
			"does not say what to drop"},
		"a block too late": {"## 1:45 ·", "## 1:50 ·", "One stream, a thousand watchers begins at minute 110, " +
			"and those before it end at 105"},
		"an hour too short":    {"| 20 | One stream", "| 15 | One stream", "one hour has 55 minutes, want 60"},
		"another question":     {"- **4b** What is", "- **4b** Whatever is", "no answer to 4b"},
		"a story that is gone": {"*A resync asks no server*", "*A resync*", "there is no story A resync"},
		"a lab that is gone": {"**lab** `hole-in-history`", "**lab** `hole-in-pocket`",
			"there is no lab \"hole-in-pocket\": `go run ./cmd/lab` lists them"},
	} {
		t.Run(name, func(t *testing.T) {
			seeded := strings.Replace(workshop, seed.old, seed.new, 1)
			got := slices.Concat(clockFaults(seeded), answerFaults(seeded, answers), nameFaults(seeded))
			assert.True(t, slices.Contains(got, seed.want), "got %q, want %q among them", got, seed.want)
		})
	}
	t.Run("a record that is not", func(t *testing.T) {
		seeded := strings.Replace(answers, "`StoreUpdate`", "`StoreUpdated`", 1)
		assert.EqualSlices(t, answerFaults(workshop, seeded), []string{"3d: there is no record StoreUpdated"})
	})
}

var keyRow = regexp.MustCompile(`\[(\[".*?"\]), "([^"]+)"`)

// handout is two pages for the attendees, from the drawing of ARCHITECTURE.md, the page's keys and the questions of
// WORKSHOP.md.
func handout() ([]byte, error) {
	var page bytes.Buffer
	page.WriteString("# List-watch on two pages\n\n<!-- Generated from ARCHITECTURE.md, the page's keys and " +
		"WORKSHOP.md: go test ./internal/check/policy -run Fresh -update -->\n")
	architecture, err := os.ReadFile(filepath.Join(root, "docs", "ARCHITECTURE.md"))
	if err != nil {
		return nil, err
	}
	_, picture, _ := strings.Cut(string(architecture), "```\n")
	picture, _, _ = strings.Cut(picture, "```\n")
	fmt.Fprintf(&page, "\n```\n%s```\n", picture)
	page.WriteString("\n## Keys of the page\n\n| | | | |\n|---|---|---|---|\n")
	var cells []string
	scripts, err := filepath.Glob(filepath.Join(root, "viz", "*", "*.js"))
	if err != nil {
		return nil, err
	}
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			return nil, err
		}
		for _, row := range keyRow.FindAllStringSubmatch(string(text), -1) {
			cells = append(cells, keyNames(row[1])+" | "+row[2])
		}
	}
	for i := 0; i < len(cells); i += 2 {
		right := " | "
		if i+1 < len(cells) {
			right = cells[i+1]
		}
		fmt.Fprintf(&page, "| %s | %s |\n", cells[i], right)
	}
	workshop, err := os.ReadFile(filepath.Join(root, "docs", "WORKSHOP.md"))
	if err != nil {
		return nil, err
	}
	page.WriteString(
		"\n---\n\n## My guesses\n\nFirst guess, then look. [ANSWERS.md](ANSWERS.md) has the answers.\n\n" +
			"| | question | my guess |\n|---|---|---|\n")
	for _, each := range question.FindAllStringSubmatch(string(workshop), -1) {
		fmt.Fprintf(&page, "| %s | %s | |\n", each[1], each[2])
	}
	return page.Bytes(), nil
}

// keyNames turns the list of keys of a row into words; of a long list the first key.
func keyNames(list string) string {
	var keys []string
	if err := json.Unmarshal([]byte(list), &keys); err != nil || len(keys) > 2 {
		keys = keys[:min(len(keys), 1)]
	}
	names := strings.NewReplacer("Shift+ ", "Shift Space", " ", "Space", "Escape", "Esc").Replace(strings.Join(keys,
		"\n"))
	return "**" + strings.ReplaceAll(names, "\n", " ") + "**"
}
