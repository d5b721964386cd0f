//go:build full && unix

package recipes

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"listwatch/internal/check/require"
)

// TestEveryGuideEndsGreen follows each guide whose block of commands names this test. In a copy of the tree it applies
// an author's change, a patch in testdata, if there is one. Then it runs the commands, which must succeed.
func TestEveryGuideEndsGreen(t *testing.T) {
	guides := 0
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if !slices.Contains(b.words, "TestEveryGuideEndsGreen") {
				continue
			}
			guides++
			heading := p.lines[b.line]
			for line := b.line; !strings.HasPrefix(heading, "## "); line-- {
				heading = p.lines[line]
			}
			guide := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(heading, "## ")), " ", "-")
			t.Run(guide, func(t *testing.T) {
				dir := copyOfTheTree(t)
				change := require.Value(filepath.Abs(filepath.Join("testdata", guide+".patch")))(t)
				if _, err := os.Stat(change); err == nil {
					run(t, dir, "git apply -C1 --recount "+change)
				}
				for _, step := range b.steps {
					run(t, dir, step.command)
				}
			})
		}
	}
	require.True(t, guides >= 6, "docs/CONTRIBUTING.md has %d guides that end with commands", guides)
}

// copyOfTheTree returns a folder with the files that git does not ignore, as a repository of its own.
func copyOfTheTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	run(t, root(t), "git ls-files -coz --exclude-standard | tar --null --ignore-failed-read -T - -cf - | "+
		"tar -xf - -C "+dir)
	run(t, dir, "git init -q && git add -A && git -c user.name=author -c user.email=author@localhost commit -qm copy")
	return dir
}

// run runs a command in dir and fails the test if the command fails.
func run(t *testing.T, dir, command string) {
	t.Helper()
	shell := exec.CommandContext(t.Context(), "bash", "-c", command)
	shell.Dir = dir
	said, err := shell.CombinedOutput()
	require.True(t, err == nil, "$ %s\n%s\n%v: mend the guide, or the patch in testdata that is its example", command,
		said, err)
}
