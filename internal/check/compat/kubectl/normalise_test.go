package kubectl

import (
	"regexp"
	"strings"
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
