package policy

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	gomod := []byte(read(t, "go.mod")) // the paths in generated files begin at it
	require.NoError(t, os.WriteFile(filepath.Join(copied, "go.mod"), gomod, 0o600))
	run(t, "tool", templModfile, "templ", "generate", "-path", copied)
	templates, err := filepath.Glob(filepath.Join(root, "viz", "*", "*.templ"))
	require.True(t, err == nil && len(templates) != 0, "got templates %v, %v", templates, err)
	generated, err := filepath.Glob(filepath.Join(root, "viz", "*", "*_templ.go"))
	assert.True(t, err == nil && len(generated) == len(templates),
		"got %d generated files of %d templates, %v", len(generated), len(templates), err)
	for _, template := range templates {
		file, err := filepath.Rel(root, strings.TrimSuffix(template, ".templ")+"_templ.go")
		require.NoError(t, err)
		want, err := os.ReadFile(filepath.Join(copied, file))
		require.NoError(t, err)
		assert.Equal(t, read(t, file), string(want), "%s is stale: run make generate and commit the result", file)
	}
}

var update = flag.Bool("update", false, "write what is generated from the sources (docs/LABS.md, docs/HANDOUT.md)")

// generated ends the part of a document that is written by hand.
const generated = "go test ./internal/check/policy -run Fresh -update -->\n"

func TestAppendicesAreFresh(t *testing.T) {
	for name, rest := range map[string]string{"LABS.md": labs(), "HANDOUT.md": handout(t)} {
		text := strings.ReplaceAll(read(t, "docs", name), "\r\n", "\n") // a checkout on Windows may have changed them
		head, _, found := strings.Cut(text, generated)
		want := head + generated + rest
		assert.True(t, found && (*update || text == want), "docs/%s is stale: run make generate and commit the result",
			name)
		if *update {
			require.NoError(t, os.WriteFile(filepath.Join(root, "docs", name), []byte(want), 0o644))
		}
	}
}

// labs is the table of the labs.
func labs() string {
	table := "\n| chapter | lab | | minutes | |\n|---|---|---|---:|---|\n"
	for _, each := range lab.All() {
		table += fmt.Sprintf("| [%s](../chapters/%s/README.md) | `%s` | %s %s | %d | %s |\n", each.Chapter[:2],
			each.Chapter, each.ID, each.Kind, strings.Repeat("★", each.Stars), each.Minutes, each.Title)
	}
	return table
}

var (
	keyRow   = regexp.MustCompile(`\[(\[".*?"\]), "([^"]+)"`)
	question = regexp.MustCompile(`(?m)^- \*\*(\d[a-z])\*\* (.*)$`)
)

// handout is two pages for the attendees: the drawing of ARCHITECTURE.md, the page's keys and the questions of
// WORKSHOP.md.
func handout(t *testing.T) string {
	picture := strings.Split(read(t, "docs", "ARCHITECTURE.md"), "```\n")[1]
	page := "\n```\n" + picture + "```\n\n## Keys of the page\n\n| | | | |\n|---|---|---|---|\n"
	scripts, err := filepath.Glob(filepath.Join(root, "viz", "*", "*.js"))
	require.NoError(t, err)
	var cells []string
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		require.NoError(t, err)
		for _, row := range keyRow.FindAllStringSubmatch(string(text), -1) {
			cells = append(cells, keyNames(row[1])+" | "+row[2])
		}
	}
	if len(cells)%2 == 1 {
		cells = append(cells, " | ")
	}
	for pair := range slices.Chunk(cells, 2) {
		page += "| " + pair[0] + " | " + pair[1] + " |\n"
	}
	page += "\n---\n\n## My guesses\n\nFirst guess, then look. [ANSWERS.md](ANSWERS.md) has the answers.\n\n" +
		"| | question | my guess |\n|---|---|---|\n"
	for _, each := range question.FindAllStringSubmatch(read(t, "docs", "WORKSHOP.md"), -1) {
		page += "| " + each[1] + " | " + each[2] + " | |\n"
	}
	return page
}

// keyNames turns the list of keys of a row into words; of a long list the first key.
func keyNames(list string) string {
	var keys []string
	if err := json.Unmarshal([]byte(list), &keys); err != nil || len(keys) > 2 {
		keys = keys[:min(len(keys), 1)]
	}
	names := strings.NewReplacer("Shift+ ", "Shift Space", " ", "Space", "Escape", "Esc").Replace(strings.Join(keys,
		"\n"))
	return "**" + strings.ReplaceAll(names, "\n", " ") + "**"
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
