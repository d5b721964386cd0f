package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"listwatch/internal/observe/takes"
)

const (
	checkLimit = time.Minute // for the tests of one check; building them has no time limit
	maxLines   = 12          // maximum number of lines of a test's message in a verdict
)

// Verdict is the result of a check.
type Verdict struct {
	Solved bool
	Says   []string // a few lines: the problems or, if there are none, what shows the success
}

// Check runs the lab's tests in the working copy dir or, for a Predict, compares the answer. It writes a line to
// progress before it builds the tests. It returns an error if ctx is done or the go command does not run.
func Check(ctx context.Context, dir string, l Lab, progress io.Writer) (Verdict, error) {
	if l.Kind == Predict {
		return l.checkAnswer(dir), nil
	}
	return l.check(ctx, dir, checkLimit, progress)
}

func (l Lab) check(ctx context.Context, dir string, limit time.Duration, progress io.Writer) (Verdict, error) {
	fmt.Fprintf(progress, "building the tests of %s …\n", l.dir())
	command := exec.CommandContext(ctx, "go", "test", "-vet=off", "-ldflags=-s", "-failfast",
		"-timeout="+limit.String(), "-run="+strings.Join(l.Tests, "|"), "./"+l.dir())
	command.Dir = dir
	command.WaitDelay = time.Second // a test may outlive the go command and keep the command's output open
	out, err := command.CombinedOutput()
	exit := (*exec.ExitError)(nil)
	switch {
	case ctx.Err() != nil || err != nil && !errors.As(err, &exit):
		return Verdict{}, fmt.Errorf("the check was interrupted: %w", errors.Join(ctx.Err(), err))
	case err == nil && !bytes.Contains(out, []byte("no tests to run")):
		return Verdict{Solved: true, Says: []string{"passed: " + l.TestCommand()}}, nil
	}
	return Verdict{Says: l.explain(string(out))}, nil
}

// timedOut matches the panic of a test binary that has run out of time, with the running test.
var timedOut = regexp.MustCompile(`panic: test timed out after (\S+)\s+running tests:\s+(\S+)`)

// leftBehind is the panic of a bubble whose test ended before its goroutines, often after an assertion had failed.
const leftBehind = "\npanic: deadlock: main bubble goroutine has exited"

// explain describes a failed check in a few lines: a timeout, a failed build, or the broken promise with the messages
// of the failed tests. It leaves out goroutine dumps.
func (l Lab) explain(out string) []string {
	if late := timedOut.FindStringSubmatch(out); late != nil {
		return []string{
			fmt.Sprintf("The check has not finished: %s still runs after %s.", late[2], late[1]),
			"Something in it waits forever, or this computer is busy: run it again. See all of it: " + l.TestCommand(),
		}
	}
	says := []string{"Not yet. The promise that does not hold: " + l.promise()}
	if strings.Contains(out, "[build failed]") {
		says = []string{"It does not compile yet."}
	}
	message, _, _ := strings.Cut(out, "\ngoroutine ")
	message, _, _ = strings.Cut(message, "\nFAIL") // the lines after FAIL are about the whole package
	said, _, waiting := strings.Cut(message, leftBehind)
	if waiting && !strings.Contains(said, ".go:") {
		said += "\n    The test ends before the goroutines that it has started."
	}
	lines := strings.Split(strings.TrimSpace(said), "\n")
	for _, line := range lines[:min(maxLines, len(lines))] {
		says = append(says, fmt.Sprintf("  %.200s", line))
	}
	if left := len(lines) - maxLines; left > 0 {
		says = append(says, fmt.Sprintf("  … (lines left out: %d)", left))
	}
	return append(says, "See all of it: "+l.TestCommand())
}

// answerFile is the file of a working copy in which the attendee writes the answer to a question.
const answerFile = "ANSWER.txt"

// replay returns the command that shows the lab's recording.
func (l Lab) replay() string {
	return "go run ./cmd/viz -replay internal/observe/takes/" + l.Take + takes.Suffix
}

// checkAnswer compares the copy's answer file with the lab's answer, ignoring case.
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

// answerIn returns the first line of the answer file that is neither blank nor a comment, or "".
func answerIn(dir string) string {
	text, _ := os.ReadFile(filepath.Join(dir, answerFile)) // a missing file counts as no answer
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return line
		}
	}
	return ""
}

// form returns the text of the answer file in a new working copy: the question, without an answer.
func (l Lab) form() string {
	return fmt.Sprintf(
		"# %s\n#\n# %s\n#\n# %s\n#\n# Write your answer below this line: the word or the number alone.\n",
		l.Title, l.Ask, l.replay())
}
