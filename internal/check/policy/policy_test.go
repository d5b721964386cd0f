package policy

import (
	"bytes"
	"cmp"
	"flag"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"text/template"

	"golang.org/x/tools/txtar"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

func TestTheHouseRulesAreKept(t *testing.T) {
	points := make(map[string]*probe.Info)
	for _, point := range probe.Points() {
		points[point.String()] = point.Info()
	}
	for _, fault := range require.Value(faultsOf(os.DirFS("../../.."), points))(t) {
		t.Error(fault)
	}
}

// TestEachRuleFindsItsFault expects the listed faults in testdata/faults.txtar, a repository that breaks each rule.
func TestEachRuleFindsItsFault(t *testing.T) {
	files := fstest.MapFS{}
	for _, file := range require.Value(txtar.ParseFile("testdata/faults.txtar"))(t).Files {
		files[file.Name] = &fstest.MapFile{Data: file.Data}
	}
	points := map[string]*probe.Info{"Typed": {Says: "{type} {key}"}, "Texts": {Texts: "why"},
		"Locked": {Locked: true}, "Lane": {Lane: "store.gone"}}
	for name := range strings.FieldsSeq("Kept Nowhere Lane Typed Texts Locked Mentioned Twice Few Behind Free") {
		info := cmp.Or(points[name], &probe.Info{})
		info.Name, info.Args, info.Lane = name, "n", cmp.Or(info.Lane, "store.loop")
		points[name] = info
	}
	assert.NoDiff(t, string(files["faults"].Data), strings.Join(require.Value(faultsOf(files, points))(t), "\n")+"\n")
}

var update = flag.Bool("update", false, "write the configurations of editors instead of comparing them")

// recipe is a file of docs/debugger. The fields fill an editor's configuration. Test is "" if the recipe runs none.
type recipe struct {
	Name, Folder, Test string
	Args               []string
}

// TestConfigurationsOfEditorsAreFresh compares .vscode and .run with testdata/editors.txtar, filled with the recipes.
func TestConfigurationsOfEditorsAreFresh(t *testing.T) {
	const root = "../../.."
	var recipes []recipe
	for _, file := range require.Value(filepath.Glob(root + "/docs/debugger/*.dlv"))(t) {
		_, line, _ := strings.Cut(string(require.Value(os.ReadFile(file))(t)), "\n# debug ")
		line, _, _ = strings.Cut(line, "\n")
		words := strings.Fields(line)
		require.True(t, len(words) > 1, "%s needs a line: # debug PACKAGE ARGUMENTS", file)
		r := recipe{Name: strings.TrimSuffix(filepath.Base(file), ".dlv"), Folder: path.Clean(words[0]),
			Args: words[1:]}
		if r.Args[0] == "-test.run" {
			r.Test = r.Args[1]
			name, _, _ := strings.Cut(r.Test, "/")
			tests := require.Value(filepath.Glob(filepath.Join(root, r.Folder, "*_test.go")))(t)
			assert.True(t, slices.ContainsFunc(tests, func(test string) bool {
				return bytes.Contains(require.Value(os.ReadFile(test))(t), []byte("\nfunc "+name))
			}), "%s: no test of %s begins with %s", file, r.Folder, name)
		}
		recipes = append(recipes, r)
	}
	var filled bytes.Buffer
	require.NoError(t, require.Value(template.ParseFiles("testdata/editors.txtar"))(t).Execute(&filled, recipes))
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
		assert.True(t, bytes.Equal(text, file.Data), "%s is stale: run make generate and commit the result", file.Name)
	}
	found := require.Value(filepath.Glob(root + "/.run/*"))(t)
	assert.Equal(t, len(recipes)+2, len(found),
		"files of .run, of which attach and viz are no recipes: run make generate")
}
