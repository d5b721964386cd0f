// Package recipes runs the debugger's recipes of docs/recipes with a real delve.
package recipes

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// recipe is one file of docs/recipes.
type recipe struct {
	file string
	pkg  string   // "./chapters/06-cacher"
	test string   // what -test.run is told
	want []string // what delve prints, in this order
}

var colour = regexp.MustCompile("\x1b\\[[0-9]*m")

// parse reads the comments of a recipe that begin with "debug" and "=>".
func parse(t *testing.T, file string) recipe {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := recipe{file: file}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if command, ok := strings.CutPrefix(line, "# debug "); ok {
			r.pkg, r.test, _ = strings.Cut(command, " ")
		}
		if want, ok := strings.CutPrefix(line, "# => "); ok {
			r.want = append(r.want, want)
		}
	}
	if r.pkg == "" || r.test == "" || len(r.want) == 0 {
		t.Fatalf("%s does not say what to debug and what is seen", file)
	}
	return r
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// output runs a Go command in the repository's root.
func output(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root(t)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return strings.TrimSpace(string(out))
}

// TestEveryRecipeStopsWhereItSays runs the commands of every recipe and looks for what its comments promise.
func TestEveryRecipeStopsWhereItSays(t *testing.T) {
	dlv := output(t, "tool", "-modfile=internal/tools/go.mod", "-n", "dlv")
	files, err := filepath.Glob(filepath.Join(root(t), "docs", "recipes", "*.dlv"))
	if err != nil || len(files) < 8 {
		t.Fatalf("%d recipes, %v", len(files), err)
	}
	binaries := map[string]string{}
	folder := t.TempDir()
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".dlv"), func(t *testing.T) {
			r := parse(t, file)
			if binaries[r.pkg] == "" {
				binary := filepath.Join(folder, filepath.Base(r.pkg)+".exe")
				output(t, "test", "-c", "-gcflags=listwatch/...=-N -l", "-o", binary, r.pkg)
				binaries[r.pkg] = binary
			}
			r.try(t, dlv, binaries[r.pkg])
		})
	}
}

// try runs the recipe with delve, which ends, and with it what it debugs, when its standard input does.
func (r recipe) try(t *testing.T, dlv, binary string) {
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	args := []string{"exec", binary, "--allow-non-terminal-interactive=true", "--init", r.file,
		"--wd", filepath.Join(root(t), r.pkg), "--", "-test.run", r.test}
	cmd := exec.CommandContext(ctx, dlv, args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	rest := colour.ReplaceAllString(string(out), "")
	for _, want := range r.want {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("delve (%v) does not show %q after what came before it; all it showed:\n%s", err, want, out)
		}
		rest = after
	}
}
