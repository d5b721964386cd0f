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

	"listwatch/internal/check/require"
)

var (
	update = flag.Bool("update", false, "write what the commands print now into the documents, where it differs")
	only   = flag.String("page", "", "run the commands of documents whose path contains this only")
)

// TestEveryDocumentedCommandDoesWhatThePageSays runs each console of each document, from the top of the page to its
// end, and compares what is printed. docs/CONTRIBUTING.md describes the form.
func TestEveryDocumentedCommandDoesWhatThePageSays(t *testing.T) {
	for _, p := range pages(t) {
		if len(p.blocks) == 0 || !strings.Contains(p.file, *only) {
			continue
		}
		t.Run(p.file, func(t *testing.T) {
			t.Parallel() // each at a terminal of its own
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

// run types what stands in the block, unless it is too slow for now, or a test of its own does.
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

// hasTest reports whether a test of that name exists, which does what the block says in another way.
func hasTest(t *testing.T, name string) bool {
	err := exec.Command("grep", "-rqF", "--include=*_test.go", "func "+name+"(", root(t)).Run()
	return err == nil
}

var goTest = regexp.MustCompile(`go (?:-C (\S+) )?test.* \./(\S+) .*-(?:run|bench|fuzz) '?([^' ]+)'?`)

// namesTests looks at least whether a command that is too slow for now names a test that exists.
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
		if err := exec.Command("grep", "-rqE", "--include=*_test.go", of, filepath.Join(root(t), dir)).
			Run(); err != nil {
			t.Errorf("%s:%d: no test of %s is called %s", p.file, b.line, dir, name)
		}
	}
}

// debug runs a block that ends up in delve. A line of output is awaited there, among whatever else delve prints.
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
	// A person has a terminal, and the usual port.
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

// write puts what was printed into the document.
func (p *page) write(t *testing.T) {
	t.Helper()
	for _, b := range slices.Backward(p.blocks) {
		for _, s := range slices.Backward(b.steps) {
			p.lines = slices.Replace(p.lines, s.from, s.to, s.want...)
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(root(t), p.file), []byte(strings.Join(p.lines, "\n")), 0o644))
}
