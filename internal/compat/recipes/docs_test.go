//go:build unix

package recipes

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"listwatch/internal/compat/program"
)

func debuggingPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "docs", "DEBUGGING.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestEveryCommandOfThePageDoesWhatItSays runs each box of DEBUGGING.md: commands of a shell, then what is typed at delve's prompt and
// what delve answers.
func TestEveryCommandOfThePageDoesWhatItSays(t *testing.T) {
	boxes := strings.Split(debuggingPage(t), "```\n")
	if len(boxes) < 15 {
		t.Fatalf("the page has %d boxes", len(boxes)/2)
	}
	for i := 1; i < len(boxes); i += 2 {
		var command string
		var script []string
		for line := range strings.Lines(boxes[i]) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "(dlv) ") || strings.HasPrefix(line, "=> ") {
				script = append(script, line)
			} else {
				command += line + "\n"
			}
		}
		switch {
		case strings.Contains(command, "RECIPE=follow-a-pod"):
			continue // has a test of its own
		case strings.HasPrefix(command, "S="):
			t.Run("the shell's lines", func(t *testing.T) { postAll(t, command) })
			continue
		case len(script) == 0:
			t.Errorf("the box does not say what is seen:\n%s", command)
			continue
		}
		t.Run(strings.Fields(command)[0]+fmt.Sprint(i/2), func(t *testing.T) {
			// A person has a terminal, and the usual port.
			command = strings.ReplaceAll(command, "dlv exec ", "dlv exec --allow-non-terminal-interactive=true ")
			command = strings.Replace(command, "make debug-viz", "make debug-viz ARGS='-listen 127.0.0.1:0'", 1)
			command = strings.Replace(command, "-demo=false\n", "-demo=false -listen 127.0.0.1:0\n", 1)
			s := debug(t, "set -e\n"+command)
			s.follow(script)
			if strings.HasPrefix(script[len(script)-1], "=> listening") {
				s.interrupt()
				s.wants("received SIGINT")
			}
			s.understood()
		})
	}
}

// postAll runs commands against a program with the manual clock.
func postAll(t *testing.T, commands string) {
	v := program.StartViz(t, "-clock=manual", "-demo=false")
	_, commands, _ = strings.Cut(commands, "\n")
	cmd := exec.Command("sh", "-ec", "S="+v.URL+"\n"+commands)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "{") < strings.Count(commands, "\n")-1 {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestThePageListsWhatTheRecipesDo: the first stop of each recipe, and every breakpoint of the long one with its condition.
func TestThePageListsWhatTheRecipesDo(t *testing.T) {
	page := debuggingPage(t)
	for _, r := range recipes(t) {
		row := fmt.Sprintf("| [%s](recipes/%s.dlv) |", r.name, r.name)
		_, rest, found := strings.Cut(page, row)
		line, _, _ := strings.Cut(rest, "\n")
		if !found || !strings.Contains(line, "| `"+r.breaks[0].function+"` |") {
			t.Errorf("no row %s… with `%s`", row, r.breaks[0].function)
		}
		if r.pkg != running {
			continue
		}
		for _, b := range r.breaks {
			if row := fmt.Sprintf("| `%s` | `%s` |", b.function, b.condition); !strings.Contains(page, row) {
				t.Errorf("no row %s", row)
			}
		}
	}
}

// TestADumpNamesTheGoroutines: what GODEBUG=tracebacklabels=1 is said to do.
func TestADumpNamesTheGoroutines(t *testing.T) {
	cmd, _ := program.VizCommand(t, "-listen", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "GODEBUG=tracebacklabels=1")
	p := program.Start(t, cmd)
	program.Eventually(t, program.ReadyWithin, func() (bool, string) {
		return strings.Contains(p.Stdout.String(), "listening on "), p.Stderr.String()
	})
	if err := cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	p.ExitCode(t, patience)
	for _, name := range []string{"cacher.dispatchEvents", "processorListener.run", "watchChan.startWatching"} {
		if !strings.Contains(p.Stderr.String(), name) {
			t.Errorf("the dump does not name %s:\n%.2000s", name, p.Stderr.String())
		}
	}
}
