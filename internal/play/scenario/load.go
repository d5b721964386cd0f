package scenario

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed stories/*.yaml
var files embed.FS

// All are the stories, in the order in which they are best told: that of their files.
var All []Story

// init reads them when there are verbs and terms: decoders find these by reflection.
func init() { All = loadAll() }

// storyFile is what a file says: what the page is told, too, and how the story is played. The name of the file is a
// number, which orders the stories, and the story's id.
type storyFile struct {
	Story
	Prepare steps
	Saw     string
	Beats   []struct {
		Beat
		Ask, Why string
		Answers  []string
		Right    int // counted from 1
		As       string
		Because  *pattern
		Do, Then steps
		Rest     moment
	} `json:"beats"`
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
func parse(text []byte) (Story, error) {
	var f storyFile
	if err := yaml.UnmarshalStrict(text, &f); err != nil {
		return Story{}, err
	}
	story := f.Story
	story.prepare, story.saw = f.Prepare, f.Saw
	for i, each := range f.Beats {
		beat := each.Beat
		if len(each.Rest) == 0 {
			return Story{}, fmt.Errorf("beat %d does not say where it rests", i+1)
		}
		beat.as, beat.because, beat.rest = each.As, each.Because, each.Rest
		beat.do, beat.then = each.Do, each.Then
		if each.Ask != "" {
			beat.Question = &Question{each.Ask, each.Answers, each.Right - 1, each.Why}
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
//	fresh = later send GET pods
type step struct {
	line, name string // name is "" if nothing keeps what comes of it
	later      bool   // on a goroutine of its own: the variable is waited for where it stands
	do         verb
	args       []string
}

type steps []step

// UnmarshalJSON implements [json.Unmarshaler]: a list of lines.
func (all *steps) UnmarshalJSON(data []byte) error {
	var lines []string
	if err := json.Unmarshal(data, &lines); err != nil {
		return err
	}
	for _, line := range lines {
		words := strings.Fields(line)
		each := step{line: line}
		if len(words) > 2 && words[1] == "=" {
			each.name, words = words[0], words[2:]
		}
		if each.later = words[0] == "later"; each.later {
			words = words[1:]
		}
		if each.do = verbs[words[0]]; each.do == nil {
			return fmt.Errorf("%q: there is no verb %s", line, words[0])
		}
		each.args = words[1:]
		*all = append(*all, each)
	}
	return nil
}
