//go:build unix

package recipes

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

func read(t *testing.T, elements ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root(t)}, elements...)...))
	require.NoError(t, err)
	return string(text)
}

// debugs says what a recipe debugs, and what that is told: "chapters/06-cacher -test.run TestAMoveReaches".
func (r *recipe) debugs() string {
	return strings.Join(append([]string{strings.TrimPrefix(r.pkg, "./")}, r.args...), " ")
}

// TestEditorsDebugEveryRecipe: a launch configuration of VS Code, its task, and one of GoLand, each with the recipe's
// folder and arguments, and no other.
func TestEditorsDebugEveryRecipe(t *testing.T) {
	var launch struct {
		Configurations []struct {
			Name, Type, Request, Mode, Program string
			Args                               []string
		}
	}
	var tasks struct {
		Tasks []struct {
			Label, Command string
			Args           []string
		}
	}
	var extensions struct{ Recommendations []string }
	for file, into := range map[string]any{"launch.json": &launch, "tasks.json": &tasks,
		"extensions.json": &extensions} {
		require.NoError(t, json.Unmarshal([]byte(read(t, ".vscode", file)), into), file)
	}
	assert.EqualSlices(t, extensions.Recommendations, []string{"golang.go"}, "what no configuration starts without")
	launched, run := map[string]string{}, map[string]string{}
	for _, each := range launch.Configurations {
		folder, ours := strings.CutPrefix(each.Program, "${workspaceFolder}/")
		_, err := os.Stat(filepath.Join(root(t), folder))
		assert.True(t, !ours || err == nil, "%s: %v", each.Name, err)
		if name, ok := strings.CutPrefix(each.Name, "recipe: "); ok {
			mode := map[bool]string{true: "debug", false: "test"}[folder == "cmd/viz"]
			assert.True(t, each.Type == "go" && each.Request == "launch" && each.Mode == mode,
				"%s does not launch what the recipe debugs: %+v", each.Name, each)
			launched[name] = strings.Join(append([]string{folder}, each.Args...), " ")
		}
	}
	for _, each := range tasks.Tasks {
		if name, ok := strings.CutPrefix(each.Label, "recipe: "); ok {
			run[name] = each.Command + " " + strings.Join(each.Args, " ")
		}
	}
	want := map[string]string{}
	for _, r := range recipes(t) {
		want[r.name] = r.debugs()
	}
	assert.NoDiff(t, launched, want, "launch.json")
	assert.NoDiff(t, goLand(t), want, ".run")
	for name := range want {
		assert.Equal(t, run[name], "make debug RECIPE="+name, "tasks.json, %s", name)
	}
	assert.Equal(t, len(run), len(want), "tasks")
}

// goLand returns what each configuration in .run debugs, by the name of its recipe.
func goLand(t *testing.T) map[string]string {
	t.Helper()
	type value struct {
		Value string `xml:"value,attr"`
	}
	files, err := filepath.Glob(filepath.Join(root(t), ".run", "*.run.xml"))
	require.NoError(t, err)
	found := map[string]string{}
	for _, file := range files {
		var parsed struct {
			Configuration struct {
				Name    string `xml:"name,attr"`
				Type    string `xml:"type,attr"`
				Package value  `xml:"package"`
				Pattern value  `xml:"pattern"`
				Args    value  `xml:"parameters"`
			} `xml:"configuration"`
		}
		require.NoError(t, xml.Unmarshal([]byte(read(t, ".run", filepath.Base(file))), &parsed), file)
		of := parsed.Configuration
		folder := strings.TrimPrefix(of.Package.Value, "listwatch/")
		_, err := os.Stat(filepath.Join(root(t), folder))
		assert.NoError(t, err, file)
		if name, ok := strings.CutPrefix(of.Name, "recipe: "); ok {
			found[name] = folder + " " + of.Args.Value
			if of.Type == "GoTestRunConfiguration" {
				found[name] = folder + " -test.run " + of.Pattern.Value
			}
		}
	}
	return found
}

// TestEveryRecipeCanBeBuilt: there is a test that the pattern runs, and two recipes that run at once in one checkout do
// not overwrite each other's binary.
func TestEveryRecipeCanBeBuilt(t *testing.T) {
	binary := regexp.MustCompile(` -o (bin/\S+) `)
	built := map[string]string{}
	for _, r := range recipes(t) {
		name := r.name
		folder, pattern, isTest := strings.Cut(r.debugs(), " -test.run ")
		files, err := filepath.Glob(filepath.Join(root(t), folder, "*_test.go"))
		require.NoError(t, err)
		declares := func(file string) bool {
			return strings.Contains(read(t, folder, filepath.Base(file)), "\nfunc "+strings.Split(pattern, "/")[0])
		}
		assert.True(t, !isTest || strings.HasPrefix(pattern, "Test") && slices.ContainsFunc(files, declares),
			"no test in %s begins with %q", folder, pattern)
		dry := exec.Command("make", "-n", "debug", "RECIPE="+name, "DLV=dlv")
		dry.Dir = root(t)
		out, err := dry.CombinedOutput()
		found := binary.FindSubmatch(out)
		require.True(t, err == nil && found != nil, "%s: %v\n%s", name, err, out)
		file := string(found[1])
		assert.Equal(t, built[file], "", "%s is built as %s, too", name, file)
		built[file] = name
		assert.True(t, strings.Contains(string(out), "exec "+file+" "),
			"%s: the debugger is not given %s:\n%s", name, file, out)
	}
}
