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

	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

const patience = 2 * time.Minute // with both cores taken

// target is a server as the programs see it.
type target struct {
	*program.Kubectl        // of the test, which asks the server itself
	url              string // for programs
	kubeconfig       string
	restart          func() // kills the server and starts it again; nil: it is not ours to kill
}

// through starts a lens before the server at an address.
func through(t *testing.T, address string) *target {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	lens := program.StartViz(t, "-flight=off", "-server", address, "-server-writes", "-kubeconfig", kubeconfig)
	t.Cleanup(func() {
		var report struct{ Findings []struct{ Sentence string } }
		lens.Get(t, "/viz/lens", &report)
		for _, finding := range report.Findings {
			t.Errorf("the lens found fault with a program that has none: %s", finding.Sentence)
		}
	})
	return &target{Kubectl: program.KubectlFor(t, &program.Viz{URL: address}), url: lens.URL, kubeconfig: kubeconfig}
}

// ours starts our server, which outlives a kill, behind a lens.
func ours(t *testing.T) *target {
	t.Helper()
	flags := []string{"-flight=off", "-demo=false", "-controllers=false", "-data-dir", t.TempDir()}
	server := program.StartViz(t, flags...)
	address, err := url.Parse(server.URL)
	require.NoError(t, err)
	at := through(t, server.URL)
	at.restart = func() { // for the whole of t, not for the part of it that asks
		server.Kill()
		server = program.StartViz(t, append(flags, "-listen", address.Host)...)
	}
	return at
}

// eventually waits until kubectl prints what is wanted, apart from white space around it.
func (at *target) eventually(t *testing.T, want string, args ...string) {
	t.Helper()
	program.Eventually(t, patience, func() (bool, string) {
		p := program.Start(t, at.Command(args...))
		p.ExitCode(t, program.HangsAfter)
		return strings.TrimSpace(p.Stdout.String()) == want, p.Stdout.String() + p.Stderr.String()
	})
}

// apply applies objects, and returns what kubectl says.
func (at *target) apply(t *testing.T, objects string) string {
	t.Helper()
	return at.Run(t, "apply", "--server-side", "-f", file(t, objects))
}

// file returns where a text stands.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "objects.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// pods returns pods of a name with numbers in [from, to), in YAML.
func pods(name string, from, to int, spec string) string {
	text := ""
	for i := from; i < to; i++ {
		text += fmt.Sprintf("---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s-%d, labels: {app: %[1]s}}\n"+
			"spec: {%[3]s containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]}\n", name, i, spec)
	}
	return text
}

// books has two managers of controller-runtime that write pages of books: one leads and is killed, the other takes
// over.
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
	if code := second.ExitCode(t, patience); code != 0 {
		t.Errorf("the second manager ended with %d:\n%s", code, second.Stderr.String())
	}
	at.Run(t, "delete", "configmap", "book")
	return []string{"pages: " + pages}
}

// startManager starts a manager of controller-runtime.
func startManager(t *testing.T, at *target) *program.Process {
	return program.Start(t, exec.Command(program.BuildOf(t, "checks", "."), "-server", at.url, "-manage"))
}

func TestOneOfTwoManagersLeads(t *testing.T) {
	t.Parallel()
	t.Logf("%q", books(t, ours(t)))
}
