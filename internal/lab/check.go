package lab

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"listwatch/internal/rules"
)

const (
	checkTime = 90 * time.Second // for one test command, its build included
	maxLines  = 12               // of a test's message that are shown
	maxColumn = 200
)

// Verdict is what a check found.
type Verdict struct {
	Solved bool
	Says   []string // what is still wrong, in a few lines; how it was checked if nothing is
}

// Check runs the lab's tests in a working copy. It returns when they have ended or ctx has.
func Check(ctx context.Context, dir string, lab Lab) Verdict {
	if lab.Ask != nil {
		return lab.checkAnswer(dir)
	}
	return check(ctx, dir, lab, "")
}

func check(ctx context.Context, dir string, lab Lab, overlay string) Verdict {
	var commands []string
	for _, test := range lab.Tests {
		out, passed := test.run(ctx, dir, overlay)
		if !passed {
			return Verdict{Says: lab.explain(test, out)}
		}
		commands = append(commands, "passed: "+test.String())
	}
	return Verdict{Solved: true, Says: commands}
}

// run runs the tests and returns what they print, as events of go test -json.
func (t Test) run(ctx context.Context, dir, overlay string) (out []byte, passed bool) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	args := []string{"test", "-json", "-count=1", "-failfast", "-timeout", "60s", "-run", t.Run}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	command := exec.CommandContext(ctx, "go", append(args, t.Package)...)
	command.Dir = dir
	command.WaitDelay = time.Second // what a killed test has started may hold its output open
	out, err := command.CombinedOutput()
	ran := bytes.Contains(out, []byte(`"Action":"run"`)) // "no tests to run" is no success
	return out, err == nil && ran
}

// ruleBroken is how a test says that one of the ten promises is broken.
var ruleBroken = regexp.MustCompile(`rule (\d+) broken at record .*`)

// storyLine is one line of what probetest.Story prints, or what stands in for those left out.
var storyLine = regexp.MustCompile(`^\s+(\S*\ds  \w+ .*|… \d+ more …)$|story\.go:\d+: what happened:`)

// explain says what is wrong: the promise, the record that shows it if the test names one or tells its story, and the test's
// own message.
func (l Lab) explain(test Test, out []byte) []string {
	name, message := failure(out)
	says := []string{"Not yet. The promise that does not hold: " + l.promise()}
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
