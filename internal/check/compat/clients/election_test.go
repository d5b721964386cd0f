package clients

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

const patience = 2 * time.Minute // enough on a machine whose two cores are busy

// target is a server under test.
type target struct {
	*program.Kubectl        // used by the test, straight to the server
	url              string // used by the programs, through the lens if there is one
	kubeconfig       string
	restart          func() // kills our server and starts it again; nil for the real server, and in TestFiveHundredPods
}

// through starts a lens in front of the server at an address. At the end, the lens may have found fault only with
// kwok 0.8, whose Option.setup sets the version of each watch to "0".
func through(t *testing.T, address string) *target {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	lens := program.StartViz(t, "-flight=off", "-server", address, "-server-writes", "-kubeconfig", kubeconfig)
	t.Cleanup(func() {
		var report struct{ Findings []struct{ Sentence string } }
		lens.Get(t, "/viz/lens", &report)
		for _, finding := range report.Findings {
			if !strings.HasPrefix(finding.Sentence, "kwok lists ") || !strings.Contains(finding.Sentence, `from "0"`) {
				t.Errorf("the lens found fault with a program that has none: %s", finding.Sentence)
			}
		}
	})
	return &target{Kubectl: program.KubectlFor(t, &program.Viz{URL: address}), url: lens.URL, kubeconfig: kubeconfig}
}

// ours starts our server behind a lens. The server's data survive a kill.
func ours(t *testing.T) *target {
	t.Helper()
	flags := []string{"-flight=off", "-demo=false", "-controllers=false", "-data-dir", t.TempDir()}
	server := program.StartViz(t, flags...)
	address := require.Value(url.Parse(server.URL))(t)
	at := through(t, server.URL)
	at.restart = func() { // uses t, so that the server outlives the subtest that calls restart
		server.Kill()
		server = program.StartViz(t, append(flags, "-listen", address.Host)...)
	}
	return at
}

// eventually waits until kubectl prints want, apart from surrounding white space.
func (at *target) eventually(t *testing.T, want string, args ...string) {
	t.Helper()
	program.Eventually(t, patience, func() (bool, string) {
		p := program.Start(t, at.Command(args...))
		p.ExitCode(t, program.HangsAfter)
		return strings.TrimSpace(p.Stdout.String()) == want, p.Stdout.String() + p.Stderr.String()
	})
}

// apply runs kubectl apply --server-side on objects, which are YAML.
func (at *target) apply(t *testing.T, objects string) {
	t.Helper()
	at.Run(t, "apply", "--server-side", "-f", file(t, objects))
}

// file writes a text to a file and returns its path.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "objects.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// pods returns YAML of pods with a common name and the numbers [from, to).
func pods(name string, from, to int, spec string) string {
	text := ""
	for i := from; i < to; i++ {
		text += fmt.Sprintf("---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s-%d, labels: {app: %[1]s}}\n"+
			"spec: {%[3]s containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]}\n", name, i, spec)
	}
	return text
}

// books runs two controller-runtime managers that write a book's pages, kills the leader, and restarts our server.
func books(t *testing.T, at *target) []string {
	leads := func(p *program.Process) {
		t.Helper()
		program.Eventually(t, patience, func() (bool, string) {
			said := p.Stderr.String()
			return strings.Contains(said, "Starting workers"), said
		})
	}
	writes := func(n string) {
		t.Helper()
		at.Run(t, "patch", "configmap", "book", "--type=merge", "-p", `{"data":{"pages":"`+n+`"}}`)
		at.eventually(t, n, "get", "configmap", "book", "-o", `jsonpath={.metadata.annotations.example\.com/written}`)
	}
	at.apply(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: book, labels: {kind: book}}\ndata: {pages: '0'}\n")
	first := startManager(t, at)
	leads(first)
	second := startManager(t, at)
	writes("3")
	first.Kill()
	leads(second)
	writes("4")
	if at.restart != nil {
		at.restart()
	}
	writes("5")
	pages := at.Run(t, "get", "configmaps", "-o",
		`jsonpath={range .items[?(@.metadata.ownerReferences)]}{.metadata.name} {end}`)
	at.eventually(t, "book-5", "get", "events.events.k8s.io", "--field-selector", "reason=Written", "-o",
		`jsonpath={.items[?(@.related.name=="book-5")].related.name}`)
	second.Interrupt(t)
	code := second.ExitCode(t, patience)
	assert.True(t, code == 0, "the second manager ended with %d:\n%s", code, second.Stderr.String())
	at.Run(t, "delete", "configmap", "book")
	return []string{"pages: " + pages}
}

// startManager starts the program checks as a manager, which works only while it leads.
func startManager(t *testing.T, at *target) *program.Process {
	return program.Start(t, exec.Command(program.BuildOf(t, "checks", "."), "-server", at.url, "-manage"))
}

func TestOneOfTwoManagersLeads(t *testing.T) {
	t.Parallel()
	t.Logf("%q", books(t, ours(t)))
}
