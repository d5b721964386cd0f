// Package stories is the room of what is done to the running pipeline: the gallery of stories, the knobs, and the
// promises. It only shows them. Knobs are defined in internal/play/sandbox/knobs.go, switches in chapters/15-pipeline,
// stories in internal/play/scenario/stories, promises in internal/observe/rules/checker.go, labs in chapters/*/labs.
package stories

import (
	"fmt"
	"strings"

	"listwatch/internal/observe/takes"
	"listwatch/internal/play/scenario"
)

// Recorded returns the place of each beat of a story in the recording that the program brings along.
func Recorded(s *scenario.Story) ([]scenario.Range, error) {
	take, ok := takes.Find(TakeOf(s.ID))
	if !ok {
		return nil, fmt.Errorf("the story %s has no recording", s.ID)
	}
	_, records, err := take.Load()
	if err != nil {
		return nil, err
	}
	return s.Locate(records)
}

// Tour is the recording of the story that the first view offers.
const Tour = takes.StoryPrefix + "tour"

// TakeOf returns the name of the recording of a story.
func TakeOf(id string) string { return takes.StoryPrefix + id }

// threadName says what a thread is: "Kubernetes issue #55230".
func threadName(ref string) string {
	project, number, _ := strings.Cut(ref, "#")
	_, name, _ := strings.Cut(project, "/")
	switch name {
	case "kubernetes":
		return "Kubernetes issue #" + number
	case "enhancements":
		return "KEP " + number
	}
	return name + " issue #" + number
}

// ThreadURL is where a thread can be read.
func ThreadURL(ref string) string {
	return "https://github.com/" + strings.Replace(ref, "#", "/issues/", 1)
}
