package probe

import (
	"flag"
	"os"
	"strings"
	"testing"

	"listwatch/internal/check/require"
)

var update = flag.Bool("update", false, "write constants.go instead of comparing it")

// The constants are made of the rows, each with what is true at its point: an editor shows it at every report.
func TestConstantsAreFresh(t *testing.T) {
	const file = "constants.go"
	want := "// Code generated from points.go: make generate. DO NOT EDIT.\n\npackage probe\n\n" +
		"// The points, in path order.\nconst (\n\t_ Point = iota\n"
	for _, point := range Points() {
		info := point.Info()
		doc := info.Name + ": " + info.Fact + "."
		if args := info.ArgNames(); len(args) > 0 {
			doc += " Args: " + strings.Join(args, ", ") + "."
		}
		want += comment(doc) + "\t" + info.Name + "\n"
	}
	want += ")\n"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
	}
	// A checkout on Windows may have changed the ends of lines.
	if got, err := os.ReadFile(file); err != nil || strings.ReplaceAll(string(got), "\r\n", "\n") != want {
		t.Errorf("%s is stale (%v): run make generate and commit the result", file, err)
	}
}

// comment returns text as an indented comment of at most 120 columns.
func comment(text string) (lines string) {
	line := "\t//"
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > 117 { // a tab is four columns
			lines, line = lines+line+"\n", "\t//"
		}
		line += " " + word
	}
	return lines + line + "\n"
}
