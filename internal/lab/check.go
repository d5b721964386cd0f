package lab

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
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

	"listwatch/internal/rules"
)

const (
	checkLimit = time.Minute // for the tests of one check; its build may take as long as it does
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
func Check(ctx context.Context, dir string, lab Lab, progress io.Writer) (Verdict, error) {
	if lab.Ask != nil {
		return lab.checkAnswer(dir), nil
	}
	return checking{limit: checkLimit, progress: progress}.check(ctx, dir, lab)
}

// checking is how a check is made.
type checking struct {
	limit    time.Duration // of the tests
	progress io.Writer
	overlay  string // file for the go command's -overlay, or ""
}

func (c checking) check(ctx context.Context, dir string, lab Lab) (verdict Verdict, err error) {
	temp, err := os.MkdirTemp("", "listwatch-lab-")
	if err != nil {
		return Verdict{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	for _, test := range lab.Tests {
		fmt.Fprintf(c.progress, "building the tests of %s …\n", test.Package)
		binary := filepath.Join(temp, "tests.exe")
		out, err := c.command(ctx, dir, "go", "test", "-c", "-json", "-vet=off", "-ldflags=-s", "-overlay="+c.overlay,
			"-o", binary, test.Package)
		if err == nil {
			out, err = c.command(ctx, filepath.Join(dir, filepath.FromSlash(test.Package)), "go", "tool", "test2json",
				binary, "-test.v=test2json", "-test.failfast", "-test.timeout="+c.limit.String(), "-test.run="+test.Run)
		}
		if ctx.Err() != nil {
			return Verdict{}, fmt.Errorf("the check was interrupted: %w", ctx.Err())
		}
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			return Verdict{}, err
		}
		ran := bytes.Contains(out, []byte(`"Action":"run"`)) // "no tests to run" is no success
		if err != nil || !ran {
			return Verdict{Says: c.explain(lab, test, out)}, nil
		}
		verdict.Says = append(verdict.Says, "passed: "+test.String())
	}
	verdict.Solved = true
	return verdict, nil
}

// command runs a command in dir and returns what it prints.
func (c checking) command(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = dir
	command.WaitDelay = time.Second // what a killed test has started may hold its output open
	return command.CombinedOutput()
}

// timedOut is how a test binary says that its time is over, and which test was running.
var timedOut = regexp.MustCompile(`panic: test timed out after (\S+)[\s\S]*?running tests:\s+(\S+)`)

// ruleBroken is how a test says that one of the ten promises is broken.
var ruleBroken = regexp.MustCompile(`rule (\d+) broken at record .*`)

// storyLine is one line of what probetest.Story prints, or what stands in for those left out.
var storyLine = regexp.MustCompile(`^\s+(\d\S*s  \w+ .*|… \d+ more …)$|story\.go:\d+: what happened:`)

// explain says what is wrong: the promise, the record that shows it if the test names one or tells its story, and the test's
// own message.
func (c checking) explain(l Lab, test Test, out []byte) []string {
	name, message := failure(out)
	says := []string{"Not yet. The promise that does not hold: " + l.promise()}
	if late := timedOut.FindStringSubmatch(strings.Join(message, "\n")); late != nil {
		return []string{
			fmt.Sprintf("The check has not finished: %s still runs after %s.", late[2], late[1]),
			"Either something in it waits for ever, or this computer is busy: run it again, or look at all of it: " + test.String(),
		}
	}
	if bytes.Contains(out, []byte(`"Action":"build-fail"`)) {
		says[0] = "It does not compile yet."
	}
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
	for i, line := range message {
		if i == maxLines {
			says = append(says, fmt.Sprintf("  … (lines left out: %d)", len(message)-maxLines))
			break
		}
		says = append(says, "  "+cut(line))
	}
	return append(says, "See all of it: "+test.String())
}

func (l Lab) promise() string {
	if l.Rule > 0 {
		return rules.All[l.Rule-1].Text
	}
	return l.Promise
}

func cut(line string) string {
	if runes := []rune(line); len(runes) > maxColumn {
		return string(runes[:maxColumn-1]) + "…"
	}
	return line
}

// failure finds the first test that failed or panicked, and what it said. A failure to build is said by the package.
func failure(out []byte) (name string, message []string) {
	type event struct{ Action, Test, Output string }
	said := map[string][]string{}
	var whole []string
	for scanner := lines(out); scanner.Scan(); {
		var e event
		if json.Unmarshal(scanner.Bytes(), &e) != nil {
			whole = append(whole, scanner.Text()) // the go command's own words
			continue
		}
		switch {
		case e.Action == "output" || e.Action == "build-output":
			if text := strings.TrimRight(e.Output, "\n"); worth(text) {
				if name == "" && e.Test != "" && strings.HasPrefix(text, "panic: ") {
					name = e.Test // another goroutine's panic: no test is said to have failed
				}
				said[e.Test] = append(said[e.Test], strings.TrimPrefix(text, "    "))
				whole = append(whole, text)
			}
		case e.Action == "fail" && e.Test != "" && len(said[e.Test]) > 0 && name == "":
			name = e.Test
		}
	}
	if name == "" {
		return "", beforeStacks(whole)
	}
	return name, beforeStacks(said[name])
}

// beforeStacks returns what is said before the goroutine dump of a panic, a deadlock or a timeout begins.
func beforeStacks(message []string) []string {
	for i, line := range message {
		if i > 0 && strings.HasPrefix(strings.TrimSpace(line), "goroutine ") {
			return message[:i]
		}
	}
	return message
}

func lines(out []byte) *bufio.Scanner {
	scanner := bufio.NewScanner(bytes.NewReader(out))
	scanner.Buffer(nil, 1<<24)
	return scanner
}

// worth reports whether a line of go test says anything but that a test runs.
func worth(line string) bool {
	trimmed := strings.TrimSpace(line)
	for _, noise := range []string{"=== ", "--- ", "FAIL\t", "ok  \t", "PASS", "exit status"} {
		if strings.HasPrefix(trimmed, noise) {
			return false
		}
	}
	return trimmed != "" && trimmed != "FAIL"
}
