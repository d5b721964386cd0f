package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"listwatch/internal/observe/takes"
)

// answerFile is where the answer to a question is written in a working copy.
const answerFile = "ANSWER.txt"

// replay is the command that shows the lab's recording.
func (l Lab) replay() string {
	return "go run ./cmd/viz -replay internal/observe/takes/" + l.Take + takes.Suffix
}

// checkAnswer compares the copy's answer file with what the recording says.
func (l Lab) checkAnswer(dir string) Verdict {
	given := answerIn(dir)
	switch {
	case given == "":
		return Verdict{Says: []string{"Write your answer into " + filepath.Join(dir, answerFile) + "."}}
	case !strings.EqualFold(given, l.Answer):
		return Verdict{Says: []string{
			fmt.Sprintf("%q is not what happened. The answer is one word or one number.", given),
			fmt.Sprintf("Look at record %d: %s, then #seq=%[1]d in the address.", l.Proof, l.replay()),
		}}
	}
	return Verdict{Solved: true, Says: []string{fmt.Sprintf("%s: record %d shows it. %s", l.Answer, l.Proof,
		l.promise())}}
}

// answerIn returns the first line of the answer file that is not a comment.
func answerIn(dir string) string {
	text, _ := os.ReadFile(filepath.Join(dir, answerFile)) // no file: no answer
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return line
		}
	}
	return ""
}

// form is the answer file as it is handed out.
func (l Lab) form() string {
	return fmt.Sprintf(
		"# %s\n#\n# %s\n#\n# %s\n#\n# Write your answer below this line: the word or the number alone.\n",
		l.Title, l.Ask, l.replay())
}
