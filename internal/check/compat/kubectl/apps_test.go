//go:build full

package kubectl

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

// TestKeptKindsAreThoseOfAKubeAPIServer plays a session with a real kube-apiserver, and compares what kubectl says with
// what is written. Only ours gives no addresses to services.
func TestKeptKindsAreThoseOfAKubeAPIServer(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/apps.txtar")
	require.NoError(t, err)
	s := &session{t: t, dir: t.TempDir()}
	for _, f := range archive.Files {
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, f.Name), f.Data, 0o600))
	}
	flags := program.StartKubeAPIServer(t, program.StartEtcd(t))
	s.kubectl = program.KubectlFor(t, &program.Viz{URL: program.StartKubectlProxy(t, flags)})
	for _, b := range parseScript(string(archive.Comment)).blocks {
		if !strings.HasPrefix(b.command, "kubectl ") {
			continue
		}
		said, err := s.play(b.command)
		require.NoError(t, err)
		assert.NoDiff(t, alike(b.output), alike(said), b.command)
	}
}

// address is one that the real server gives to a service.
var address = regexp.MustCompile(`\b10\.0\.0\.\d+\b`)

// alike returns the lines of an output without what only one of the servers has.
func alike(output string) (lines []string) {
	for line := range strings.Lines(address.ReplaceAllString(output, "<none>")) {
		if !strings.HasPrefix(line, "kubernetes ") {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
	}
	return lines
}
