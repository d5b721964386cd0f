//go:build unix

package recipes

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// page is a document whose `console` blocks the tests run.
type page struct {
	file   string // below the root
	lines  []string
	blocks []block
}

// block is one fenced block of commands and their outputs.
type block struct {
	line  int      // the fence's line, from 1
	words []string // the words after "console" in the info string
	steps []step
}

// step is a command and its output.
type step struct {
	command  string // with its continuation lines, joined by newlines
	typed    bool   // whether it is typed at the debugger's prompt
	want     []string
	from, to int // the page's output is page.lines[from:to]
}

const (
	fence      = "```"
	anything   = "…"
	atDebugger = "(dlv) "
)

// commandLine matches a command that a reader would type. Such a command must be in a console block, which a test runs.
var commandLine = regexp.MustCompile(`^(go|kubectl|curl|make|dlv|cd) [a-z.'-]|^S=`)

// pages parses the README, the docs and the chapters' READMEs.
func pages(t *testing.T) []*page {
	t.Helper()
	var all []*page
	for _, pattern := range []string{"README.md", "docs/*.md", "chapters/*/README.md"} {
		files, err := filepath.Glob(filepath.Join(root(t), pattern))
		require.True(t, err == nil && len(files) != 0, "%s: %d files, %v", pattern, len(files), err)
		for _, file := range files {
			text := require.Value(os.ReadFile(file))(t)
			name := require.Value(filepath.Rel(root(t), file))(t)
			all = append(all, parsePage(t, name, string(text)))
		}
	}
	return all
}

func parsePage(t *testing.T, file, text string) *page {
	t.Helper()
	p := &page{file: file, lines: strings.Split(text, "\n")}
	for i := 0; i < len(p.lines); i++ {
		info, opens := strings.CutPrefix(strings.TrimLeft(p.lines[i], " "), fence)
		if !opens {
			continue
		}
		end := i + 1
		for strings.TrimSpace(p.lines[end]) != fence {
			end++
		}
		words := strings.Fields(info)
		if len(words) > 0 && words[0] == "console" {
			p.blocks = append(p.blocks, block{line: i + 1, words: words[1:], steps: p.steps(t, i+1, end)})
		} else if first := strings.TrimSpace(p.lines[i+1]); commandLine.MatchString(strings.TrimPrefix(first, "$ ")) {
			t.Errorf("%s:%d: a block of commands, and not of the language console: no test runs it", file, i+1)
		}
		i = end
	}
	return p
}

// steps parses the lines [from, to) of a console.
func (p *page) steps(t *testing.T, from, to int) []step {
	t.Helper()
	var all []step
	for i := from; i < to; i++ {
		line := p.lines[i]
		command, isCommand := strings.CutPrefix(line, "$ ")
		typed, isTyped := strings.CutPrefix(line, atDebugger)
		switch {
		case isCommand:
			for i+1 < to && (strings.HasSuffix(p.lines[i], `\`) || strings.HasPrefix(p.lines[i+1], "> ")) {
				i++
				command += "\n" + strings.TrimPrefix(p.lines[i], "> ")
			}
			all = append(all, step{command: command, from: i + 1, to: i + 1})
		case isTyped:
			all = append(all, step{command: typed, typed: true, from: i + 1, to: i + 1})
		case len(all) == 0:
			t.Fatalf("%s:%d: a console begins with a command: $ …", p.file, i+1)
		default:
			last := &all[len(all)-1]
			last.want, last.to = append(last.want, line), i+1
		}
	}
	return all
}

// matches reports whether lines match want. A wanted … matches any text, or any lines if it is alone on its line.
func matches(want, lines []string) bool {
	switch {
	case len(want) == 0:
		return len(lines) == 0
	case strings.TrimSpace(want[0]) == anything:
		return matches(want[1:], lines) || len(lines) > 0 && matches(want, lines[1:])
	case len(lines) == 0:
		return false
	}
	return pattern(want[0]).MatchString(strings.TrimRight(lines[0], " \r")) && matches(want[1:], lines[1:])
}

// pattern returns the pattern for a wanted line, in which … matches any text.
func pattern(want string) *regexp.Regexp {
	quoted := regexp.QuoteMeta(strings.TrimRight(want, " "))
	return regexp.MustCompile("^" + strings.ReplaceAll(quoted, anything, ".*") + "$")
}

// outputLines splits a command's output into lines, and drops empty lines at its end.
func outputLines(text string) []string {
	text = strings.TrimRight(text, "\n \t\r")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

var (
	update = flag.Bool("update", false, "write what the commands print now into the documents, where it differs")
	only   = flag.String("page", "", "run only the commands of documents whose path contains this")
)

// TestEveryDocumentedCommandDoesWhatThePageSays runs each console of each document, from the top of the page to its
// end, and compares the outputs with the page's. docs/CONTRIBUTING.md describes the form.
func TestEveryDocumentedCommandDoesWhatThePageSays(t *testing.T) {
	for _, p := range pages(t) {
		if len(p.blocks) == 0 || !strings.Contains(p.file, *only) {
			continue
		}
		t.Run(p.file, func(t *testing.T) {
			t.Parallel() // each uses a terminal of its own
			x := newTerminal(t)
			for i := range p.blocks {
				p.blocks[i].run(t, p, x)
			}
			x.finish()
			if *update {
				p.write(t)
			}
		})
	}
}

// run runs the block's commands, unless they are for another test, for another system, or for a full run only.
func (b *block) run(t *testing.T, p *page, x *terminal) {
	for _, word := range b.words {
		switch {
		case word == "full" && !everywhere:
			b.namesTests(t, p)
			return
		case word == "linux" && runtime.GOOS != "linux":
			return
		case word == "full", word == "linux":
		case strings.HasPrefix(word, "Test") && hasTest(t, word):
			return
		default:
			t.Errorf("%s:%d: no test has the name %s", p.file, b.line, word)
			return
		}
	}
	if slices.ContainsFunc(b.steps, func(s step) bool { return s.typed }) {
		b.debug(t)
		return
	}
	for i := range b.steps {
		x.run(&b.steps[i])
	}
	require.True(t, !t.Failed(), "%s:%d", p.file, b.line)
}

// hasTest reports whether a test of that name exists.
func hasTest(t *testing.T, name string) bool {
	err := exec.Command("grep", "-rqF", "--include=*_test.go", "func "+name+"(", root(t)).Run()
	return err == nil
}

var goTest = regexp.MustCompile(`go (?:-C (\S+) )?test.* \./(\S+) .*-(?:run|bench|fuzz) '?([^' ]+)'?`)

// namesTests checks that the tests named by the block's go test commands exist. The block is too slow for this run.
func (b *block) namesTests(t *testing.T, p *page) {
	t.Helper()
	for _, s := range b.steps {
		named := goTest.FindStringSubmatch(s.command)
		if named == nil {
			continue
		}
		dir, name := filepath.Join(named[1], named[2]), named[3]
		of := "func (Test|Example|Benchmark|Fuzz)\\w*(" + strings.NewReplacer("Test", "", "Example", "", "Benchmark",
			"", "Fuzz", "", "^", "", "$", "").Replace(name) + ")"
		err := exec.Command("grep", "-rqE", "--include=*_test.go", of, filepath.Join(root(t), dir)).Run()
		assert.True(t, err == nil, "%s:%d: no test of %s is called %s", p.file, b.line, dir, name)
	}
}

// debug runs a block that starts delve, and waits for each wanted line among delve's output.
func (b *block) debug(t *testing.T) {
	command := "set -e\n"
	var script []string
	for _, s := range b.steps {
		if s.typed {
			script = append(script, atDebugger+s.command)
		} else {
			command += s.command + "\n"
		}
		for _, line := range s.want {
			script = append(script, "=> "+line)
		}
	}
	// Unlike a reader, the test has no terminal and needs a free port.
	command = strings.ReplaceAll(command, "dlv exec ", "dlv exec --allow-non-terminal-interactive=true ")
	command = strings.Replace(command, "make debug-viz", "make debug-viz ARGS='-listen 127.0.0.1:0'", 1)
	command = strings.Replace(command, "-demo=false\n", "-demo=false -listen 127.0.0.1:0\n", 1)
	s := debug(t, command)
	s.follow(script)
	if strings.HasPrefix(script[len(script)-1], "=> listening") {
		s.interrupt()
		s.wants("received SIGINT")
	}
	s.understood()
}

// write puts the actual outputs into the document.
func (p *page) write(t *testing.T) {
	t.Helper()
	for _, b := range slices.Backward(p.blocks) {
		for _, s := range slices.Backward(b.steps) {
			p.lines = slices.Replace(p.lines, s.from, s.to, s.want...)
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(root(t), p.file), []byte(strings.Join(p.lines, "\n")), 0o644))
}
