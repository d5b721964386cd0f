package scenario

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"

	"sigs.k8s.io/yaml"

	"listwatch/internal/observe/probe"
)

//go:embed stories/*.yaml
var files embed.FS

// All are the stories, in the order in which they are best told: that of their files.
var All = loadAll()

// storyFile is what a file says. The name of the file is a number, which orders the stories, and the story's id.
type storyFile struct {
	Title, Symptom, Watch, Chapter, Thread, Alone, Group, Means string

	Cast                   []Member
	Versions, Prepare, Was []string
	Beats                  []struct {
		Say, Look, Ask, Why, As string
		Seen, At, Text, Because string
		Answers                 []string
		Right                   int // counted from 1
		Do, Then                []string
		Rest                    oneOrMore
	}
	Saw string
}

// oneOrMore is a text, or a list of texts.
type oneOrMore []string

// UnmarshalJSON implements [json.Unmarshaler].
func (o *oneOrMore) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*o = oneOrMore{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(o))
}

func loadAll() []Story {
	names, _ := fs.Glob(files, "stories/*.yaml") // the pattern is well formed
	all := make([]Story, 0, len(names))
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			panic(fmt.Sprintf("scenario: %v", err))
		}
		story, err := parse(text)
		if err != nil {
			panic(fmt.Sprintf("scenario: %s: %v", name, err)) // it is part of the program: a test has read it
		}
		_, story.ID, _ = strings.Cut(strings.TrimSuffix(name, ".yaml"), "-")
		all = append(all, story)
	}
	return all
}

// parse reads a story.
func parse(text []byte) (story Story, err error) {
	var f storyFile
	if err := yaml.UnmarshalStrict(text, &f); err != nil {
		return Story{}, err
	}
	story = Story{
		Title: f.Title, Symptom: strings.TrimSpace(f.Symptom), Watch: f.Watch, Chapter: f.Chapter, Thread: f.Thread,
		Alone: f.Alone, Was: f.Was, Group: f.Group, Means: strings.TrimSpace(f.Means), Cast: f.Cast,
		Versions: f.Versions, saw: strings.TrimSpace(f.Saw),
	}
	if story.prepare, err = parseSteps(f.Prepare); err != nil {
		return Story{}, err
	}
	for i, each := range f.Beats {
		beat := Beat{Say: strings.TrimSpace(each.Say), as: each.As, Seen: each.Seen, At: each.At, Text: each.Text}
		for station := range strings.FieldsSeq(each.Look) {
			beat.Look = append(beat.Look, probe.Station(station))
		}
		if each.Ask != "" {
			beat.Question = &Question{
				Ask: each.Ask, Answers: each.Answers, Right: each.Right - 1, Why: strings.TrimSpace(each.Why),
			}
		}
		if each.Because != "" {
			because, err := parsePattern(strings.Fields(each.Because))
			if err != nil {
				return Story{}, fmt.Errorf("beat %d: %w", i+1, err)
			}
			beat.because = &because
		}
		var doErr, thenErr, restErr error
		beat.do, doErr = parseSteps(each.Do)
		beat.then, thenErr = parseSteps(each.Then)
		beat.rest, restErr = parseMoment(each.Rest)
		for _, err := range []error{doErr, thenErr, restErr} {
			if err != nil {
				return Story{}, fmt.Errorf("beat %d: %w", i+1, err)
			}
		}
		story.Beats = append(story.Beats, beat)
	}
	return story, nil
}

// step is one line: what is done, and the variable that keeps what comes of it.
//
//	last = change a 8
//	turn line.cut listwatch-informer true
//	expect $told DELETED
type step struct {
	line, name string // name is "" if nothing keeps what comes of it
	do         verb
	args       []string
}

func parseSteps(lines []string) (steps []step, err error) {
	for _, line := range lines {
		words := strings.Fields(line)
		each := step{line: line}
		if len(words) > 2 && words[1] == "=" {
			each.name, words = words[0], words[2:]
		}
		if each.do = verbs[words[0]]; each.do == nil {
			return nil, fmt.Errorf("%q: there is no verb %s", line, words[0])
		}
		each.args = words[1:]
		steps = append(steps, each)
	}
	return steps, nil
}
