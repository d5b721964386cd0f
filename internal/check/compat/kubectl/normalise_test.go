package kubectl

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"listwatch/internal/check/require"
)

// volatile is what no two runs have in common, and what stands for it.
var volatile = []struct {
	pattern *regexp.Regexp
	word    string
}{
	{regexp.MustCompile(`http://127\.0\.0\.1:\d+`), "SERVER"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "HOST"},
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`), "TIME"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}`), "TIME"}, // diff -u
	{
		regexp.MustCompile(
			`(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-S][a-z][a-z] \d{4} \d\d:\d\d:\d\d [+-]\d{4}`), "TIME"},
	{regexp.MustCompile(`("?resourceVersion"?: ?)"\d+"`), `$1"RV"`},
	{regexp.MustCompile(`\S*[/\\](LIVE|MERGED)-\d+[/\\]`), "$1/"},
	{regexp.MustCompile(`\bgenerated-[bcdfghjklmnpqrstvwxz2456789]{5}\b`), "generated-XXXXX"},
	{regexp.MustCompile(`hash=[0-9A-F]+`), "hash=HASH"},
	{regexp.MustCompile(`"edited-\d+\.yaml"`), "FILE"},
	{regexp.MustCompile(`\S*kubectl-edit-\d+\.yaml`), "FILE"},
	{regexp.MustCompile(`\bip-\d+\b`), "ip-N"},
	// What client-go says about its own life.
	{regexp.MustCompile(`^[IWE]\d{4} \d\d:\d\d:\d\d\.\d+ .*$`), ""},
}

// age is how long ago something happened, as kubectl and servers write it.
var age = regexp.MustCompile(`(^| |\()\d+[smhd](\d+[smh])?( |$|\))`)

// normalise replaces what is volatile in an output.
func normalise(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		for _, v := range volatile {
			line = v.pattern.ReplaceAllString(line, v.word)
		}
		lines[i] = strings.TrimRight(line, " \t\r")
	}
	for i, line := range lines {
		if header.MatchString(line) {
			realign(lines[i:])
		}
		lines[i] = age.ReplaceAllString(lines[i], "${1}Ns${3}")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// header is the first line of a table with ages in it, and columnStart the end of the gap before a column.
var (
	header      = regexp.MustCompile(`^(NAME|NAMESPACE|EVENT|LAST SEEN)  .*\b(AGE|TYPE)\b`)
	columnStart = regexp.MustCompile(` {2,}(\S)`)
)

// realign lays out a table again, up to an empty line, with all ages equally long: how wide a column is depends on how
// long the test takes. A table with a line that does not keep to the columns, as in a watch, is left as it is.
func realign(lines []string) {
	starts := []int{0}
	for _, gap := range columnStart.FindAllStringIndex(lines[0], -1) {
		starts = append(starts, gap[1]-1)
	}
	var table [][]string
	widths := make([]int, len(starts))
	for _, line := range lines {
		if line == "" {
			break
		}
		row := make([]string, len(starts))
		for c, start := range starts {
			if start > 0 && start < len(line) && line[start-2:start] != "  " {
				return
			}
			end := len(line)
			if c+1 < len(starts) {
				end = min(end, starts[c+1])
			}
			if start < end {
				row[c] = age.ReplaceAllString(strings.TrimSpace(line[start:end]), "${1}Ns${3}")
			}
			widths[c] = max(widths[c], len(row[c]))
		}
		table = append(table, row)
	}
	for r, row := range table {
		line := ""
		for c, cell := range row {
			line += cell + strings.Repeat(" ", widths[c]-len(cell)+3)
		}
		lines[r] = strings.TrimRight(line, " ")
	}
}

// dialects are what kubectls of other ages are known to say differently, and what stands for it.
var dialects = []struct {
	pattern *regexp.Regexp
	word    string
}{
	{regexp.MustCompile(`( deleted) from \S+ namespace`), "$1"}, // since 1.34
	{regexp.MustCompile(`(?m)^ *Kube-Proxy Version:.*\n`), ""},  // until 1.32
	{regexp.MustCompile(`\n+(\nBinaryData\n)`), "$1"},           // an empty line more since 1.27
	// A connection that cannot be upgraded.
	{regexp.MustCompile(`(! error: error upgrading connection: )unable to upgrade connection: `), "$1"},
	{regexp.MustCompile(`! error: unable to upgrade connection(: the server could not find)`), "! Error from server " +
		"(NotFound)$1"},
	{regexp.MustCompile(`(ephemeral containers are disabled .*\))\.`), "$1"},
	{regexp.MustCompile(`(?m)^! All commands and output from this session will be recorded .*\n`), ""}, // since 1.32
	{regexp.MustCompile(`( is not valid for pod \S+) out of:.*`), "$1"},
	{regexp.MustCompile(`\n *(Node-Selectors|Tolerations):\s*<none>`), ""}, // only in a template
}

// dialect takes from an output what depends on the age of kubectl.
func dialect(text string) string {
	for _, d := range dialects {
		text = d.pattern.ReplaceAllString(text, d.word)
	}
	return text
}

// asOpenAPIv2 has kubectl explain as it did until 1.26, which then was the only way and needed no flag.
const asOpenAPIv2 = " --output=plaintext-openapiv2"

// knowsOpenAPIv3 asks a kubectl whether it has that flag.
func knowsOpenAPIv3(t *testing.T, binary string) bool {
	t.Helper()
	help, err := exec.Command(binary, "explain", "--help").Output()
	require.NoError(t, err)
	return strings.Contains(string(help), asOpenAPIv2[:len(" --output=")])
}

// spoken returns a command in the words of a kubectl that explains by OpenAPI v2 alone. ok is false if it has none: the
// sessions ask for every explanation in both ways.
func spoken(command string) (_ string, ok bool) {
	plain := strings.Replace(command, asOpenAPIv2, "", 1)
	return plain, plain != command || !strings.HasPrefix(command, "kubectl explain ")
}

// editVariable makes this test binary an editor: the file that is its argument has every "old" of "old/new" replaced.
// No shell is needed for that.
const editVariable = "EDIT"

func TestMain(m *testing.M) {
	if change, ok := os.LookupEnv(editVariable); ok {
		if err := edit(os.Args[len(os.Args)-1], change); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// A session mostly waits for what the program and kubectl do at their own pace.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

func edit(file, change string) error {
	old, replacement, ok := strings.Cut(change, "/")
	if !ok {
		return fmt.Errorf("%s=%s: want old/new", editVariable, change)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(strings.ReplaceAll(string(text), old, replacement)), 0o600)
}
