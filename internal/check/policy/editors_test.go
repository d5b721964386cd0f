package policy

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

// debugged is what a recipe of docs/recipes debugs: a chapter's test, or the program.
type debugged struct{ folder, args string }

// recipes returns what each recipe debugs, by name.
func recipes(t *testing.T) map[string]debugged {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "docs", "recipes", "*.dlv"))
	require.True(t, err == nil && len(files) != 0, "no recipes, %v", err)
	all := make(map[string]debugged)
	for _, file := range files {
		_, rest, _ := strings.Cut(read(t, file), "# debug ./")
		line, _, _ := strings.Cut(rest, "\n")
		folder, args, _ := strings.Cut(line, " ")
		all[strings.TrimSuffix(filepath.Base(file), ".dlv")] = debugged{folder, args}
	}
	return all
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// pattern is what chooses a chapter's test, "" for the program.
func (d debugged) pattern() string {
	_, pattern, _ := strings.Cut(d.args, "-test.run ")
	return pattern
}

// mustExist fails the test if there is no such folder, or no test there that the pattern runs.
func mustExist(t *testing.T, of debugged) {
	t.Helper()
	if of.folder == "cmd/viz" {
		return
	}
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(of.folder), "*_test.go"))
	require.True(t, err == nil && len(files) != 0, "%s has no tests, %v", of.folder, err)
	name, _, _ := strings.Cut(of.pattern(), "/")
	declares := func(file string) bool { return strings.Contains(read(t, file), "\nfunc "+name) }
	assert.True(t, strings.HasPrefix(name, "Test") && slices.ContainsFunc(files, declares),
		"no test in %s begins with %q", of.folder, name)
}

func TestVSCodeDebugsEveryRecipe(t *testing.T) {
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
	for file, into := range map[string]any{"launch.json": &launch, "tasks.json": &tasks} {
		require.NoError(t, json.Unmarshal([]byte(read(t, filepath.Join(root, ".vscode", file))), into), file)
	}
	launched, run := map[string]debugged{}, map[string]string{}
	for _, each := range launch.Configurations {
		folder, ours := strings.CutPrefix(each.Program, "${workspaceFolder}/")
		if _, err := os.Stat(filepath.Join(root, folder)); ours && err != nil {
			t.Errorf("%s: %v", each.Name, err)
		}
		if name, ok := strings.CutPrefix(each.Name, "recipe: "); ok {
			mode := map[bool]string{true: "debug", false: "test"}[folder == "cmd/viz"]
			require.True(t, each.Type == "go" && each.Request == "launch" && each.Mode == mode,
				"%s does not launch what the recipe debugs: %+v", each.Name, each)
			launched[name] = debugged{folder, strings.Join(each.Args, " ")}
		}
	}
	for _, each := range tasks.Tasks {
		if name, ok := strings.CutPrefix(each.Label, "recipe: "); ok {
			run[name] = each.Command + " " + strings.Join(each.Args, " ")
		}
	}
	all := recipes(t)
	for name, want := range all {
		mustExist(t, want)
		assert.Equal(t, launched[name], want, "launch.json, %s", name)
		if command := "make debug RECIPE=" + name; run[name] != command {
			t.Errorf("tasks.json, %s: got %q, want %q", name, run[name], command)
		}
	}
	assert.True(t, len(launched) == len(all) && len(run) == len(all),
		"%d launch configurations and %d tasks for %d recipes", len(launched), len(run), len(all))
}

func TestGoLandDebugsEveryRecipe(t *testing.T) {
	type value struct {
		Value string `xml:"value,attr"`
	}
	type component struct {
		Configuration struct {
			Name    string `xml:"name,attr"`
			Type    string `xml:"type,attr"`
			Package value  `xml:"package"`
			Pattern value  `xml:"pattern"`
			Args    value  `xml:"parameters"`
		} `xml:"configuration"`
	}
	files, err := filepath.Glob(filepath.Join(root, ".run", "*.run.xml"))
	require.NoError(t, err)
	found := map[string]debugged{}
	for _, file := range files {
		var parsed component
		require.NoError(t, xml.Unmarshal([]byte(read(t, file)), &parsed), file)
		folder := strings.TrimPrefix(parsed.Configuration.Package.Value, Module+"/")
		_, err := os.Stat(filepath.Join(root, folder))
		assert.NoError(t, err, file)
		if name, ok := strings.CutPrefix(parsed.Configuration.Name, "recipe: "); ok {
			found[name] = debugged{folder, parsed.Configuration.Args.Value}
			if parsed.Configuration.Type == "GoTestRunConfiguration" {
				found[name] = debugged{folder, "-test.run " + parsed.Configuration.Pattern.Value}
			}
		}
	}
	all := recipes(t)
	for name, want := range all {
		assert.Equal(t, found[name], want, "%s", name)
	}
	assert.Equal(t, len(found), len(all), "%d configurations for %d recipes", len(found), len(all))
}

// TestEveryRecipeHasABinaryOfItsOwn: two that run at once in one checkout do not overwrite each other.
func TestEveryRecipeHasABinaryOfItsOwn(t *testing.T) {
	binary := regexp.MustCompile(` -o (bin/\S+) `)
	built := map[string]string{}
	for name := range recipes(t) {
		dry := exec.Command("make", "-n", "debug", "RECIPE="+name, "DLV=dlv")
		dry.Dir = root
		out, err := dry.CombinedOutput()
		found := binary.FindSubmatch(out)
		require.True(t, err == nil && found != nil, "%s: %v\n%s", name, err, out)
		file := string(found[1])
		other := built[file]
		assert.Equal(t, other, "", "%s and %s are both built as %s", name, other, file)
		built[file] = name
		assert.True(t, strings.Contains(string(out), "exec "+file+" "),
			"%s: the debugger is not given %s:\n%s", name, file, out)
	}
}

// TestVSCodeIsToldOfItsExtension: without it no launch configuration of ours starts.
func TestVSCodeIsToldOfItsExtension(t *testing.T) {
	var file struct{ Recommendations []string }
	require.NoError(t, json.Unmarshal([]byte(read(t, filepath.Join(root, ".vscode", "extensions.json"))), &file))
	assert.EqualSlices(t, file.Recommendations, []string{"golang.go"}, "it recommends")
}

var (
	// unixOnly is what a Unix shell or its tools understand, and PowerShell does not. The last two it takes apart: it
	// drops double quotes in an argument, and cuts an argument that begins with - at its first dot.
	unixOnly = regexp.MustCompile(`\$[\w({]|&&|\|\||\|\s*(?:grep|head|tail|tr|sed|cut|wc|sort|uniq|awk|xargs|stdbuf|base64)\b|` +
		`\b(?:seq|pgrep|sleep|timeout|export)\s|\bfor \w+ in\b|<<|/dev/|2>|\\$|&$|^\w+=|^\(|\w\(\) \{|'[^']*"[^']*'|\s-\w[^\s'"]*\.`)

	// piped is a text that goes through a pipe. That way it arrives whole.
	piped = regexp.MustCompile(`^echo '[^']*' \| `)

	// onlyHere are commands that not every system has, each with what a page says about it that uses it.
	onlyHere = map[*regexp.Regexp]string{
		regexp.MustCompile(`^curl `): "In PowerShell, `curl` is `curl.exe`",
		regexp.MustCompile(`^make `): "Without `make`, type what it runs",
	}
)

// shellFaults says which commands are for a Unix shell alone.
func shellFaults(repo *Repo) []Fault {
	texts, faults := repo.texts("README.md", "docs/*.md", "chapters/*/README.md")
	for name, text := range texts {
		faults = append(faults, typedFaults(name, text)...)
	}
	return faults
}

// typedFaults looks at what a reader types on a page: what stands behind "$ " in a console, and how it goes on. A
// console that is for Linux says so, and is left out.
func typedFaults(name, text string) (faults []Fault) {
	console := false
	for i, line := range strings.Split(text, "\n") {
		if info, fence := strings.CutPrefix(line, "```"); fence {
			console = strings.HasPrefix(info, "console") && !strings.HasPrefix(info, "console linux")
		}
		command := strings.TrimPrefix(strings.TrimPrefix(line, "$ "), "> ")
		if !console || command == line {
			continue
		}
		if found := unixOnly.FindString(piped.ReplaceAllString(command, "")); found != "" {
			faults = append(faults, fault(name, i+1, "%q is for a Unix shell: write what PowerShell understands, too",
				found))
		}
		for uses, says := range onlyHere {
			if uses.MatchString(command) && !strings.Contains(text, says) {
				faults = append(faults, fault(name, i+1, "the page does not say %q", says))
			}
		}
	}
	return faults
}

func TestEveryReadersShellUnderstandsTheCommands(t *testing.T) {
	for command, want := range map[string]int{
		`kubectl get --raw "/api/v1/pods?watch=true&resourceVersion=0"`:       0,
		`go test ./chapters/06-cacher -run 'Slow|Sequentially' -v`:            0,
		`echo '{"do":"hold"}' | kubectl create --raw /viz/hold -f -`:          0,
		`go tool '-modfile=internal/check/tools/go.mod' dlv version`:          0,
		`kubectl -s http://127.0.0.1:8080 patch pod a -p '{spec: {}}' # this`: 0,
		`kubectl -s $S get pods`:                                   1,
		`kubectl get pods | grep a`:                                1,
		`for i in $(seq 200); do`:                                  1,
		`curl -sN http://127.0.0.1:8080/api`:                       1,
		`make debug-viz`:                                           1,
		`kubectl annotate pod a big=$(head -c 10 x)`:               1,
		`(cd internal/check/compat && go test ./server)`:           1,
		`S=http://127.0.0.1:8080`:                                  1,
		`kubectl get pods -w &`:                                    1,
		`kubectl patch pod a -p '{"spec":{}}'`:                     1,
		`go tool -modfile=internal/check/tools/go.mod dlv version`: 1,
		"kubectl get pods \\\n> -w":                                1,
		"kubectl get pods\n> -w | head":                            1,
	} {
		page := "```console\n$ " + command + "\nprints | grep\n```\n\n```console linux\n$ seq 2\n```\n"
		got := typedFaults("READS.md", page)
		assert.Equal(t, len(got), want, "%s: got %v, want %d", command, got, want)
	}
	for command, says := range map[string]string{"make debug-viz": "Without `make`, type what it runs.",
		"curl -s http://127.0.0.1:8080": "(In PowerShell, `curl` is `curl.exe`.)"} {
		got := typedFaults("README.md", says+"\n\n```console\n$ "+command+"\n```\n")
		assert.Equal(t, len(got), 0, "%s, and the page says so: got %v", command, got)
	}
}
