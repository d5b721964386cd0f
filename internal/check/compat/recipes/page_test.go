//go:build unix

package recipes

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// page is a document whose blocks of the language `console` are run.
type page struct {
	file   string // below the root
	lines  []string
	blocks []block
}

// block is one fenced block: what is typed, and what is then seen.
type block struct {
	line  int      // of the fence, from 1
	words []string // of the info string, after "console"
	steps []step
}

// step is a command and its output.
type step struct {
	command  string // lines that went on with a backslash or behind "> " are lines here
	typed    bool   // at the debugger's prompt
	want     []string
	from, to int // the lines of want in page.lines: [from, to)
}

const (
	fence      = "```"
	anything   = "…"
	atDebugger = "(dlv) "
)

// commandLine is the first word of what a reader would type. A block that has such a line and is not a console would be
// run by no test.
var commandLine = regexp.MustCompile(`^(go|kubectl|curl|make|dlv|cd) [a-z.'-]|^S=`)

// pages reads every document that is shown to readers.
func pages(t *testing.T) []*page {
	t.Helper()
	var all []*page
	for _, pattern := range []string{"README.md", "docs/*.md", "chapters/*/README.md"} {
		files, err := filepath.Glob(filepath.Join(root(t), pattern))
		require.True(t, err == nil && len(files) != 0, "%s: %d files, %v", pattern, len(files), err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			name, err := filepath.Rel(root(t), file)
			require.NoError(t, err)
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

// steps reads the lines [from, to) of a console.
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

// matches reports whether lines are what is wanted. In a wanted line … stands for any text; alone on its line, for
// any lines.
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

// pattern returns what one line of an output must be.
func pattern(want string) *regexp.Regexp {
	quoted := regexp.QuoteMeta(strings.TrimRight(want, " "))
	return regexp.MustCompile("^" + strings.ReplaceAll(quoted, anything, ".*") + "$")
}

// outputLines splits what a command has printed; empty lines at its end do not count.
func outputLines(text string) []string {
	text = strings.TrimRight(text, "\n \t\r")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func TestAnOutputMatchesUpToWhatIsLeftOpen(t *testing.T) {
	for _, c := range []struct {
		want, got string
		matches   bool
	}{
		{"", "", true},
		{"", "a\n", false},
		{"a", "", false},
		{"a\nb", "a\nb\n\n", true},
		{"a\nb", "a\nc\nb", false},
		{"a\n…\nb", "a\nc\nd\nb", true},
		{"a\n…\nb", "a\nb", true},
		{"a\n…\nb", "a\nb\nc", false},
		{"pod/a (…s)", "pod/a (0.01s)", true},
		{"pod/a (…s)", "pod/b (0.01s)", false},
		{"…", "", true},
		{"a.c", "abc", false},
	} {
		got := matches(outputLines(c.want), outputLines(c.got))
		assert.Equal(t, c.matches, got, "%q for %q: %v, want %v", c.got, c.want, got, c.matches)
	}
}
