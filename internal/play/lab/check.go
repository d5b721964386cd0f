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
	"slices"
	"strings"
	"time"
)

const (
	checkLimit = time.Minute // for the tests of one check; their build may take as long as it does
	maxLines   = 12          // of a test's message that are shown
	maxColumn  = 200
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
		return l.checkAnswer(dir)
	}
	return checking{limit: checkLimit, progress: progress}.check(ctx, dir, l)
}

// checking is how a check is made.
type checking struct {
	limit    time.Duration // of the tests
	progress io.Writer
	overlay  string // file for the go command's -overlay, or ""
}

func (c checking) check(ctx context.Context, dir string, l Lab) (_ Verdict, err error) {
	temp, err := os.MkdirTemp("", "listwatch-lab-")
	if err != nil {
		return Verdict{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	fmt.Fprintf(c.progress, "building the tests of %s …\n", l.dir())
	tests := filepath.Join(temp, "tests.exe")
	out, err := run(ctx, dir, "go", "test", "-c", "-vet=off", "-ldflags=-s", "-overlay="+c.overlay, "-o", tests, "./"+
		l.dir())
	if err != nil {
		return l.verdict(ctx, "It does not compile yet.", out, err)
	}
	out, err = run(ctx, filepath.Join(dir, "chapters", l.Chapter), tests,
		"-test.v", "-test.failfast", "-test.timeout="+c.limit.String(), "-test.run="+strings.Join(l.Tests, "|"))
	if err == nil && !bytes.Contains(out, []byte("no tests to run")) {
		return Verdict{Solved: true, Says: []string{"passed: " + l.testCommand()}}, nil
	}
	return l.verdict(ctx, "Not yet. The promise that does not hold: "+l.promise(), out, err)
}

// run runs a command in dir and returns what it prints.
func run(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = dir
	command.WaitDelay = time.Second // what a killed test has started may hold its output open
	return command.CombinedOutput()
}

var (
	// timedOut is how a test binary says that its time is over, and which test was running.
	timedOut = regexp.MustCompile(`panic: test timed out after (\S+)\s+running tests:\s+(\S+)`)
	// ruleBroken is how a test says that one of the ten promises is broken.
	ruleBroken = regexp.MustCompile(`rule (\d+) broken at record .*`)
	// storyLine is one line of what probetest.Story prints, or what stands in for those left out.
	storyLine = regexp.MustCompile(`^\s+(\d\S*s  \w+ .*|… \d+ more …)$|story\.go:\d+: what happened:`)
	// aboutTest is a line that says which test the next lines are of.
	aboutTest = regexp.MustCompile(`^ *(=== \w+|--- \w+:) +(\S+)`)
	// noise is all that a test binary says of its tests apart from what they say.
	noise = regexp.MustCompile(`^(FAIL|PASS|exit status \d+)?$`)
)

// verdict explains what a failed command has printed: what is wrong, the record that shows it if the test names one or
// tells its story, and the test's own message.
func (l Lab) verdict(ctx context.Context, wrong string, out []byte, err error) (Verdict, error) {
	if exit := (*exec.ExitError)(nil); ctx.Err() != nil || err != nil && !errors.As(err, &exit) {
		return Verdict{}, fmt.Errorf("the check was interrupted: %w", errors.Join(ctx.Err(), err))
	}
	if late := timedOut.FindSubmatch(out); late != nil {
		return Verdict{Says: []string{
			fmt.Sprintf("The check has not finished: %s still runs after %s.", late[2], late[1]),
			"Something in it waits for ever, or this computer is busy: run it again. See all of it: " + l.testCommand(),
		}}, nil
	}
	name, message := firstFailure(string(out))
	says := []string{wrong}
	if broken := ruleBroken.FindString(strings.Join(message, "\n")); broken != "" {
		says = append(says, broken)
	}
	for _, line := range slices.Backward(message) {
		if l.Record != "" && storyLine.MatchString(line) && strings.Contains(line, l.Record) {
			says = append(says, "The record that shows it: "+strings.Join(strings.Fields(line), " "))
			break
		}
	}
	message = slices.DeleteFunc(message, storyLine.MatchString)
	if name != "" {
		says = append(says, name+" says:")
	}
	for _, line := range message[:min(maxLines, len(message))] {
		says = append(says, "  "+cut(line))
	}
	if left := len(message) - maxLines; left > 0 {
		says = append(says, fmt.Sprintf("  … (lines left out: %d)", left))
	}
	return Verdict{Says: append(says, "See all of it: "+l.testCommand())}, nil
}

// firstFailure returns the first test that says why it failed, and what it says before the goroutine dump of a panic
// begins. The name is "" if the tests did not compile.
func firstFailure(out string) (name string, message []string) {
	said := map[string][]string{}
	test := ""
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, "goroutine ") {
			break
		}
		if about := aboutTest.FindStringSubmatch(line); about != nil {
			test = about[2]
			if about[1] == "--- FAIL:" && name == "" && len(said[test]) > 0 {
				name = test
			}
		} else if !noise.MatchString(strings.TrimSpace(line)) {
			said[test] = append(said[test], strings.TrimPrefix(line, "    "))
		}
	}
	if name == "" {
		name = test // it panicked, or another goroutine did while it ran
	}
	return name, said[name]
}

func cut(line string) string {
	if runes := []rune(line); len(runes) > maxColumn {
		return string(runes[:maxColumn-1]) + "…"
	}
	return line
}
