package policy

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"listwatch/internal/observe/probe"
)

const pointsFile = "internal/observe/probe/points.go"

// The constant of a point is documented with what is true at the point, so that an editor shows it at every report.
func TestPointDocsAreFresh(t *testing.T) {
	file := filepath.Join(root, pointsFile)
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got = bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n")) // a checkout on Windows may have changed the ends of lines
	want := documentPoints(t, string(got))
	if string(got) == want {
		return
	}
	if !*update {
		t.Fatalf("%s is stale: run make generate and commit the result", pointsFile)
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// documentPoints writes the comments of the constants in the first const block of src again.
func documentPoints(t *testing.T, src string) string {
	t.Helper()
	points := make(map[string]*probe.Info)
	for _, point := range probe.Points() {
		points[point.String()] = point.Info()
	}
	begin := strings.Index(src, "const (\n")
	end := begin + strings.Index(src[begin:], "\n)\n")
	var lines []string
	for _, line := range strings.Split(src[begin:end], "\n") {
		name := strings.TrimSpace(line)
		if strings.HasPrefix(name, "//") {
			continue
		}
		if info := points[name]; info != nil {
			lines = append(lines, pointDoc(info)...)
			delete(points, name)
		}
		lines = append(lines, line)
	}
	for name := range points {
		t.Errorf("the point %s has no constant of its name in the first const block of %s", name, pointsFile)
	}
	return src[:begin] + strings.Join(lines, "\n") + src[end:]
}

// pointDoc returns the comment of a point's constant, in lines of at most 120 characters.
func pointDoc(info *probe.Info) []string {
	text := info.Name + ": " + info.Fact + "."
	if args := info.ArgNames(); len(args) > 0 {
		text += " Args: " + strings.Join(args, ", ") + "."
	}
	var lines []string
	line := "\t//"
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > 120 {
			lines = append(lines, line)
			line = "\t//"
		}
		line += " " + word
	}
	return append(lines, line)
}
