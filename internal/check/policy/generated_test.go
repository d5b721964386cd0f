package policy

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/recording"
	"listwatch/internal/observe/takes"
	"listwatch/internal/play/lab"
)

// templModfile has go commands choose the pinned generator of templates.
const templModfile = "-modfile=internal/check/tools/go.mod"

// run runs the go command in the repository and returns what it prints.
func run(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.Command("go", args...)
	command.Dir = root
	out, err := command.CombinedOutput()
	require.Equal(t, err, nil, "go %q: %v\n%s", args, err, out)
	return strings.TrimSpace(string(out))
}

// TestGeneratedFilesAreFresh generates all templates in a copy, with the pinned tool.
func TestGeneratedFilesAreFresh(t *testing.T) {
	const version = "{{.Version}}"
	library, tool := run(t, "list", "-m", "-f", version, "github.com/a-h/templ"), run(t, "list", templModfile, "-m",
		"-f", version, "github.com/a-h/templ")
	assert.Equal(t, library, tool, "templ is %s in go.mod, and its generator %s", library, tool)
	copied := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(copied, "viz"), os.DirFS(filepath.Join(root, "viz"))))
	gomod := []byte(read(t, filepath.Join(root, "go.mod"))) // the paths in generated files begin at it
	require.NoError(t, os.WriteFile(filepath.Join(copied, "go.mod"), gomod, 0o600))
	run(t, "tool", templModfile, "templ", "generate", "-path", copied)
	templates, err := filepath.Glob(filepath.Join(root, "viz", "*", "*.templ"))
	require.True(t, err == nil && len(templates) != 0, "got templates %v, %v", templates, err)
	generated, err := filepath.Glob(filepath.Join(root, "viz", "*", "*_templ.go"))
	assert.True(t, err == nil && len(generated) == len(templates),
		"got %d generated files of %d templates, %v", len(generated), len(templates), err)
	for _, template := range templates {
		file := strings.TrimSuffix(template, ".templ") + "_templ.go"
		relative, err := filepath.Rel(root, file)
		require.NoError(t, err)
		assert.Equal(t, read(t, file), read(t, filepath.Join(copied, relative)),
			"%s is stale: run make generate and commit the result", file)
	}
}

var update = flag.Bool("update", false, "write what is generated from the sources (docs/LABS.md, "+
	"docs/HANDOUT.md) instead of comparing it")

func TestAppendicesAreFresh(t *testing.T) {
	handout, err := handout()
	require.NoError(t, err)
	for name, want := range map[string][]byte{
		"HANDOUT.md": handout,
		"LABS.md":    labsPage(),
	} {
		file := filepath.Join(root, "docs", name)
		if *update {
			require.NoError(t, os.WriteFile(file, want, 0o644))
			continue
		}
		got, err := os.ReadFile(file)
		require.NoError(t, err)
		// A checkout on Windows may have changed the ends of lines.
		assert.True(t, bytes.Equal(bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n")), want),
			"docs/%s is stale: run make generate and commit the result", name)
	}
}

// labsPage is the list of the labs, as Markdown.
func labsPage() []byte {
	var page bytes.Buffer
	page.WriteString(`# Labs

<!-- Generated from chapters/*/labs: go test ./internal/check/policy -run Fresh -update -->

A lab is an exercise on a working copy of these sources, and needs no network. In *find it* something is broken: you get
the symptom, as a user would report it, and mend the cause. In *build it* the heart of a station is taken out: you write
it. In *predict it* you answer a question and look the answer up in a recording.

~~~console TestALabIsStartedCheckedHintedAndSolved
$ go run ./cmd/lab                     # lists the labs
$ go run ./cmd/lab start neighbours    # writes a working copy into .lab/neighbours, and says what is wrong in it
$ cd .lab/neighbours
$ go run ./cmd/viz                     # shows it on the stage with the lab and what the last check found
$ go run ./cmd/lab hint neighbours     # one hint more at each call
$ go run ./cmd/lab check neighbours    # is it solved? If not: which promise does not hold, and what the test says
$ go run ./cmd/lab solution neighbours # the difference to the present sources
~~~

Stars say how hard a lab is, minutes how long it takes at a first try. A chapter's README is the reading for its labs.
~lab start~ says what a user would report, as does the page in its gallery of stories (Y). The file of a lab is
~chapters/CHAPTER/labs/LAB.txtar~; it gives the answer away.

| chapter | lab | | minutes | |
|---|---|---|---:|---|
`)
	for _, each := range lab.All() {
		fmt.Fprintf(&page, "| [%s](../chapters/%s/README.md) | `%s` | %s %s | %d | %s |\n", each.Chapter[:2],
			each.Chapter, each.ID, each.Kind, strings.Repeat("★", each.Stars), each.Minutes, each.Title)
	}
	return bytes.ReplaceAll(page.Bytes(), []byte("~"), []byte("`"))
}

// TestRecordingsAreFresh: the program warns of a recording that another table of points has written. Of those
// that it brings along it never has to.
func TestRecordingsAreFresh(t *testing.T) {
	for _, take := range slices.Concat(takes.All, takes.Stories) {
		rec, err := recording.Read(t.Context(), bytes.NewReader(take.File()))
		require.NoError(t, err)
		assert.Equal(t, rec.Header.Points, recording.PointsHash(),
			"%s: written with another table of points: run make recordings and commit the result", take.Name)
	}
}
