package scenario

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed stories/*.yaml
var files embed.FS

// All are the stories, in the order of their files, which is the best order to tell them.
var All []Story

// init runs after verbs and terms are initialized, which the decoders use.
func init() { All = loadAll() }

// loadAll reads the stories. The name of a file is a number, which orders the stories, and the story's id. It panics at
// an error: the files are part of the program, and a test reads them.
func loadAll() (all []Story) {
	names, err := fs.Glob(files, "stories/*.yaml")
	for _, name := range names {
		text, readErr := files.ReadFile(name)
		var story Story
		if err = cmp.Or(err, readErr, yaml.UnmarshalStrict(text, &story)); err != nil {
			panic(fmt.Sprintf("scenario: %s: %v", name, err))
		}
		_, story.ID, _ = strings.Cut(strings.TrimSuffix(name, ".yaml"), "-")
		all = append(all, story)
	}
	return all
}

// step is one line: a verb with its words, and the variable for its result.
//
//	last = change a 8
//	turn line.cut listwatch-informer true
//	expect $told DELETED
//	fresh = later send GET pods
type step struct {
	line, name string // name "": the result is dropped
	later      bool   // runs concurrently: expand waits for the result
	do         verb
	args       []string
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *step) UnmarshalText(line []byte) error {
	s.line = string(line)
	words := strings.Fields(s.line)
	if len(words) > 2 && words[1] == "=" {
		s.name, words = words[0], words[2:]
	}
	if s.later = words[0] == "later"; s.later {
		words = words[1:]
	}
	if s.do = verbs[words[0]]; s.do == nil {
		return fmt.Errorf("%q: there is no verb %s", line, words[0])
	}
	s.args = words[1:]
	return nil
}

// MarshalText implements [encoding.TextMarshaler].
func (s step) MarshalText() ([]byte, error) { return []byte(s.line), nil }
