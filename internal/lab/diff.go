package lab

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const diffContext = 3 // lines that a hunk shows around what it changes

// Solution returns what turns the broken sources of a lab into those at root, as a diff that git applies; for a Predict
// the answer and the record that shows it.
func Solution(root string, lab Lab) (string, error) {
	if lab.Ask != nil {
		answer, seq, err := lab.Ask.solve()
		return fmt.Sprintf("%s (record %d of %s)\n", answer, seq, lab.Ask.Take), err
	}
	changed, err := Apply(os.DirFS(root), lab.Edits)
	if err != nil {
		return "", err
	}
	var diff strings.Builder
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		present, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return "", err
		}
		diff.WriteString(unified(name, string(changed[name]), string(present)))
	}
	return diff.String(), nil
}

// unified returns the difference of two texts as one hunk: from the first line that differs to the last.
func unified(name, before, after string) string {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	from := max(0, head-diffContext)
	rest := min(tail, diffContext+1) - 1 // the last element is what follows the last line's end
	toA, toB := len(a)-tail, len(b)-tail
	var hunk strings.Builder
	fmt.Fprintf(&hunk, "--- a/%s\n+++ b/%s\n@@ -%d,%d +%d,%d @@\n", name, name, from+1, toA+rest-from, from+1, toB+rest-from)
	write := func(sign string, lines []string) {
		for _, line := range lines {
			hunk.WriteString(sign + line + "\n")
		}
	}
	write(" ", a[from:head])
	write("-", a[head:toA])
	write("+", b[head:toB])
	write(" ", a[toA:toA+rest])
	return hunk.String()
}
