package policy

import (
	"bytes"
	"flag"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"golang.org/x/tools/txtar"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

var update = flag.Bool("update", false, "write the configurations of editors instead of comparing them")

// recipe is a file of docs/recipes, as far as an editor's configuration has it. Test is "" where Args are a
// program's.
type recipe struct {
	Name, Folder, Test string
	Args               []string
}

// TestConfigurationsOfEditorsAreFresh compares .vscode and .run with testdata/editors.txtar, filled with the
// recipes.
func TestConfigurationsOfEditorsAreFresh(t *testing.T) {
	const root = "../../.."
	var recipes []recipe
	for _, file := range require.Value(filepath.Glob(root + "/docs/recipes/*.dlv"))(t) {
		_, line, _ := strings.Cut(string(require.Value(os.ReadFile(file))(t)), "\n# debug ")
		line, _, _ = strings.Cut(line, "\n")
		words := strings.Fields(line)
		require.True(t, len(words) > 1, "%s needs a line: # debug PACKAGE ARGUMENTS", file)
		r := recipe{Name: strings.TrimSuffix(filepath.Base(file), ".dlv"), Folder: path.Clean(words[0]),
			Args: words[1:]}
		if r.Args[0] == "-test.run" {
			r.Test = r.Args[1]
		}
		recipes = append(recipes, r)
	}
	var filled bytes.Buffer
	form := require.Value(template.ParseFiles("testdata/editors.txtar"))(t)
	require.NoError(t, form.Execute(&filled, recipes))
	files := txtar.Parse(filled.Bytes()).Files
	if *update {
		require.NoError(t, os.RemoveAll(filepath.Join(root, ".run")))
		require.NoError(t, os.Mkdir(filepath.Join(root, ".run"), 0o755))
	}
	for _, file := range files {
		name := filepath.Join(root, file.Name)
		if *update {
			require.NoError(t, os.WriteFile(name, file.Data, 0o644))
		}
		text, _ := os.ReadFile(name)
		assert.True(t, bytes.Equal(text, file.Data), "%s is stale: run make generate and commit the result",
			file.Name)
	}
	found := require.Value(filepath.Glob(root + "/.run/*"))(t)
	assert.Equal(t, len(recipes)+2, len(found),
		"files of .run, of which attach and viz are no recipes: run make generate")
}
