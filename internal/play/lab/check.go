package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	checkLimit = time.Minute // for the tests of one check; their build may take as long as it does
	maxLines   = 12          // of a test's message that are shown
)

// Verdict is what a check found.
type Verdict struct {
	Solved bool
	Says   []string // what is still wrong, in a few lines; how it was checked if nothing is
}

// Check runs the lab's tests in the working copy dir. What takes long is said to progress, a line each. The error says
// why there is no verdict: ctx was done, or the go command does not run.
func Check(ctx context.Context, dir string, l Lab, progress io.Writer) (Verdict, error) {
	if l.Kind == Predict {
		return l.checkAnswer(dir), nil
	}
	return checking{limit: checkLimit, progress: progress}.check(ctx, dir, l)
}

// checking is how a check is made.
type checking struct {
	limit    time.Duration // of the tests
	progress io.Writer
	overlay  string // file for the go command's -overlay, or ""
}

func (c checking) check(ctx context.Context, dir string, l Lab) (Verdict, error) {
	fmt.Fprintf(c.progress, "building the tests of %s …\n", l.dir())
	command := exec.CommandContext(ctx, "go", "test", "-json", "-vet=off", "-ldflags=-s", "-failfast",
		"-overlay="+c.overlay, "-timeout="+c.limit.String(), "-run="+strings.Join(l.Tests, "|"), "./"+l.dir())
	command.Dir = dir
	command.WaitDelay = time.Second // a test may outlive the go command, and hold its output open
	out, err := command.CombinedOutput()
	exit := (*exec.ExitError)(nil)
	switch {
	case ctx.Err() != nil || err != nil && !errors.As(err, &exit):
		return Verdict{}, fmt.Errorf("the check was interrupted: %w", errors.Join(ctx.Err(), err))
	case err == nil && !bytes.Contains(out, []byte("no tests to run")):
		return Verdict{Solved: true, Says: []string{"passed: " + l.testCommand()}}, nil
	}
	return Verdict{Says: l.explain(out)}, nil
}

var (
	// timedOut is how a test binary says that its time is over, and which test was running.
	timedOut = regexp.MustCompile(`panic: test timed out after (\S+)\s+running tests:\s+(\S+)`)
	// storyLine is one line of what probetest.Story prints, or what stands in for those left out.
	storyLine = regexp.MustCompile(`^\s+(\d\S*s  \w+ .*|… \d+ more …)$|story\.go:\d+: what happened:`)
	// noise is what the testing package says of a test, and not the test itself.
	noise = regexp.MustCompile(`^ *(=== \w+ .*|--- \w+: .*|FAIL.*|PASS|)$`)
)

// explain says of a check that has failed, in a few lines, what is wrong: the promise, and the test's own message.
func (l Lab) explain(out []byte) []string {
	name, message := firstFailure(out)
	text := strings.Join(message, "\n")
	if late := timedOut.FindStringSubmatch(text); late != nil {
		return []string{
			fmt.Sprintf("The check has not finished: %s still runs after %s.", late[2], late[1]),
			"Something in it waits for ever, or this computer is busy: run it again. See all of it: " + l.testCommand(),
		}
	}
	says := []string{"Not yet. The promise that does not hold: " + l.promise()}
	if bytes.Contains(out, []byte(`"Action":"build-fail"`)) {
		says = []string{"It does not compile yet."}
	}
	message = slices.DeleteFunc(message, storyLine.MatchString)
	if name != "" {
		says = append(says, name+" says:")
	}
	for _, line := range message[:min(maxLines, len(message))] {
		says = append(says, fmt.Sprintf("  %.200s", line))
	}
	if left := len(message) - maxLines; left > 0 {
		says = append(says, fmt.Sprintf("  … (lines left out: %d)", left))
	}
	return append(says, "See all of it: "+l.testCommand())
}

// firstFailure returns the first test that says why it failed, and what it says before the goroutine dump of a panic
// begins. out is what go test -json prints. The name is "" if the tests did not compile.
func firstFailure(out []byte) (name string, message []string) {
	said := map[string][]string{}
	for line := range bytes.Lines(out) {
		var event struct{ Action, Test, Output string }
		if json.Unmarshal(line, &event) != nil {
			event.Output = string(line) // the go command says so itself
		}
		text := strings.TrimRight(event.Output, "\r\n")
		switch {
		case strings.HasPrefix(text, "goroutine "):
			return event.Test, said[event.Test]
		case event.Action == "fail" && len(said[event.Test]) > 0:
			return event.Test, said[event.Test]
		case !noise.MatchString(text):
			said[event.Test] = append(said[event.Test], strings.TrimPrefix(text, "    "))
		}
	}
	return "", said[""]
}
