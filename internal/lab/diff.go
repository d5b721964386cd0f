package lab

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	difflib "github.com/rogpeppe/go-internal/diff"
)

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
	var diff bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		present, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return "", err
		}
		diff.Write(difflib.Diff("a/"+name, changed[name], "b/"+name, present))
	}
	return diff.String(), nil
}
