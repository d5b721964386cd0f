//go:build unix

package recipes

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
)

// recipe is one file of docs/debugger.
type recipe struct {
	name   string
	pkg    string   // "./chapters/06-cacher"
	script []string // in order: "=> TEXT" waits for delve's output, "(dlv) COMMAND" types a command
	stops  string   // the function of its first breakpoint
}

const running = "./cmd/viz" // the package of recipes that debug the whole program

// recipes reads all recipes in docs/debugger.
func recipes(t *testing.T) []recipe {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root(t), "docs", "debugger", "*.dlv"))
	require.True(t, err == nil && len(files) >= 9, "%d recipes, %v", len(files), err)
	var all []recipe
	for _, file := range files {
		r := recipe{name: strings.TrimSuffix(filepath.Base(file), ".dlv")}
		for line := range strings.Lines(read(t, "docs", "debugger", filepath.Base(file))) {
			r.read(strings.TrimSpace(line))
		}
		if r.pkg == "" || r.stops == "" || !slices.ContainsFunc(r.script, func(line string) bool {
			return strings.HasPrefix(line, "=> ")
		}) {
			t.Fatalf("%s does not say what to debug, where it stops and what is seen", file)
		}
		all = append(all, r)
	}
	return all
}

func (r *recipe) read(line string) {
	if command, ok := strings.CutPrefix(line, "# debug "); ok {
		r.pkg = strings.Fields(command)[0]
	}
	if said, ok := strings.CutPrefix(line, "# "); ok && (strings.HasPrefix(said, "=> ") || strings.HasPrefix(said,
		"(dlv) ")) {
		r.script = append(r.script, said)
	}
	if words := strings.Fields(line); r.stops == "" && len(words) == 3 && words[0] == "break" {
		r.stops = words[2]
	}
}

// TestEveryRecipeStopsWhereItSays runs each recipe by `make debug RECIPE=` and expects the output in its comments.
func TestEveryRecipeStopsWhereItSays(t *testing.T) {
	for _, r := range recipes(t) {
		if r.pkg == running {
			continue // TestAPodIsFollowedThroughTheRunningProgram runs it
		}
		t.Run(r.name, func(t *testing.T) {
			t.Parallel() // each has a binary of its own
			s := debug(t, "make debug RECIPE="+r.name)
			s.follow(r.script)
			s.understood()
		})
	}
}

// signsOfHarm lists the points that a program reports after its start only if a stop has harmed it.
var signsOfHarm = []string{"WatcherForced", "ReflectorListed", "ReflectorBackoff", "ReflectorWatchEnded", "StreamEnded",
	"WatchChanError", "CacherNotReady"}

// TestAPodIsFollowedThroughTheRunningProgram runs the recipe for the whole program. A real kubectl creates the pod.
// While kubectl waits, delve stops the program in etcd for longer than etcd itself would wait. The stop must not affect
// kubectl, nor any watcher, stream or reflector.
func TestAPodIsFollowedThroughTheRunningProgram(t *testing.T) {
	t.Parallel()
	i := slices.IndexFunc(recipes(t), func(r recipe) bool { return r.pkg == running })
	r := recipes(t)[i]
	s := debug(t, "make debug RECIPE="+r.name+" ARGS='-listen 127.0.0.1:0 -flight=off'")
	s.wants("listening on ")
	s.wants("\n")
	line, _, _ := strings.Cut(s.shown()[strings.LastIndex(s.shown()[:s.at], "listening on "):], "\n")
	v := &program.Viz{Process: s.Process, URL: strings.TrimPrefix(line, "listening on ")}
	before, began := v.Points(t), time.Now()
	kubectl := program.Start(t, program.KubectlFor(t, v).Command("run", "a", "--image=nginx"))

	stops := 0
	for _, line := range r.script {
		s.follow([]string{line})
		switch {
		case strings.HasPrefix(line, "=> > [create] "):
			s.follow([]string{
				"(dlv) break apply go.etcd.io/etcd/server/v3/etcdserver.(*EtcdServer).applyEntryNormal",
				"(dlv) continue",
				"=> > [apply] ",
			})
			stops++
			time.Sleep(*stay) // the stop that this test is about
			s.types("clear apply")
		case everywhere && strings.HasPrefix(line, "=> > ["):
			stops++
			time.Sleep(*stay)
		}
	}
	require.True(t, stops > 0, "the recipe does not stop in the store")
	s.types("clearall")
	s.types("continue")
	code := kubectl.ExitCode(t, patience)
	assert.True(t, code == 0 && kubectl.Stderr.String() == "" && kubectl.Stdout.String() == "pod/a created\n",
		"kubectl run: status %d, stdout %q, stderr %q", code, kubectl.Stdout.String(), kubectl.Stderr.String())
	// The log may report two stops as one, so the test compares the sum of their times.
	program.Eventually(t, patience, func() (bool, string) {
		told, most := stopped(t, v), time.Since(began)
		return told >= time.Duration(stops)*(*stay-time.Second) && told <= most, fmt.Sprintf("the log reports "+
			"stops of %v in all; there were %d stops of %v in %v", told, stops, *stay, most)
	})
	after := v.Points(t)
	for _, point := range signsOfHarm {
		assert.True(t, after[point] == before[point],
			"%s: %d before, %d after %d stops of %v", point, before[point], after[point], stops, *stay)
	}
	s.interrupt()
	s.wants("received SIGINT")
	s.understood()
}

// stopped returns the total time for which the program was stopped, according to the log.
func stopped(t *testing.T, v *program.Viz) time.Duration {
	t.Helper()
	var log struct{ Records []json.RawMessage }
	v.Get(t, "/viz/records?from=1", &log)
	var sum time.Duration
	for _, written := range log.Records {
		r := require.Value(fold.ReadRecord(written))(t)
		if r.Point != probe.ProgramStopped {
			continue
		}
		d := require.Value(time.ParseDuration(strings.ReplaceAll(r.Field(probe.FieldPause), " ", "")))(t)
		sum += d
	}
	return sum
}

// TestThePageListsWhatTheRecipesDo checks that DEBUGGING.md has a row for each recipe, with the recipe's first stop.
func TestThePageListsWhatTheRecipesDo(t *testing.T) {
	page := read(t, "docs", "DEBUGGING.md")
	for _, r := range recipes(t) {
		row := fmt.Sprintf("| [%s](debugger/%s.dlv) |", r.name, r.name)
		_, rest, found := strings.Cut(page, row)
		line, _, _ := strings.Cut(rest, "\n")
		assert.True(t, found && strings.Contains(line, "| `"+r.stops+"` |"), "no row %s… with `%s`", row, r.stops)
	}
}

// TestADumpNamesTheGoroutines checks that GODEBUG=tracebacklabels=1 adds the goroutines' names to a dump.
func TestADumpNamesTheGoroutines(t *testing.T) {
	t.Parallel()
	cmd, _ := program.VizCommand(t, "-listen", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "GODEBUG=tracebacklabels=1")
	p := program.Start(t, cmd)
	program.Eventually(t, program.HangsAfter, func() (bool, string) {
		return strings.Contains(p.Stdout.String(), "listening on "), p.Stderr.String()
	})
	require.NoError(t, cmd.Process.Signal(syscall.SIGQUIT))
	p.ExitCode(t, patience)
	for _, name := range []string{"cacher.dispatchEvents", "processorListener.run", "watchChan.startWatching"} {
		assert.True(t, strings.Contains(p.Stderr.String(), name),
			"the dump does not name %s:\n%.2000s", name, p.Stderr.String())
	}
}
