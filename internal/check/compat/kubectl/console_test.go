package kubectl

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

// sent is a request as kubectl -v=8 says it: the body, quoted or as indented lines; the method, the address, headers.
var sent = regexp.MustCompile(`"Request Body" body=(?:<\n((?:\t.*\n)+) >|(".*"))\n` +
	`(?:[^\t].*\n)*?.*"Request" verb="(\w+)" url="http://[^/]+(\S+)" headers=<\n((?:\t.*\n)+) >`)

// ours are the header lines that the console writes itself.
var ours = regexp.MustCompile(`(?m)^(User-Agent|Accept-Encoding):.*\n`)

// requests returns those requests for pods in what a kubectl has said, as the console wants them written.
func requests(t *testing.T, said string) (all []string) {
	t.Helper()
	for _, match := range sent.FindAllStringSubmatch(said, -1) {
		body, header := strings.TrimSpace(match[1]), strings.ReplaceAll("\n"+match[5], "\n\t", "\n")
		if match[2] != "" {
			var err error
			body, err = strconv.Unquote(match[2])
			require.NoError(t, err)
		}
		if !strings.HasPrefix(match[4], "/api/v1/namespaces/default/pods") {
			continue
		}
		path := regexp.MustCompile(`resourceVersion=\d+`).ReplaceAllString(match[4], "resourceVersion=VERSION")
		text := match[3] + " " + path + ours.ReplaceAllString(header, "")
		if body != "" {
			text += "\n" + body + "\n"
		}
		all = append(all, text)
	}
	return all
}

// TestTheConsoleOffersWhatKubectlSends: the ready-made requests of the page's console are those of kubectl -v=8.
func TestTheConsoleOffersWhatKubectlSends(t *testing.T) {
	t.Parallel()
	k := program.KubectlFor(t, program.StartViz(t, "-demo=false", "-flight=off"))
	manifest := filepath.Join(t.TempDir(), "pod.yaml")
	require.NoError(t, os.WriteFile(manifest, []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"+
		"spec: {containers: [{name: web, image: example.com/web}]}\n"), 0o600))
	var text strings.Builder
	for _, each := range []struct {
		command string
		n       int // requests that do it: what follows only waits
	}{
		{"get pods", 1}, {"get pods -w", 2}, {"run hello --image=example.com/hello", 1}, {"label pod hello app=web", 2},
		{"delete pod hello", 1}, {"apply --server-side -f pod.yaml", 1},
	} {
		args := strings.Fields(strings.Replace(each.command, "pod.yaml", manifest, 1))
		p := program.Start(t, k.Command(append([]string{"-v=8"}, args...)...))
		var all []string
		program.Eventually(t, patience, func() (bool, string) {
			all = requests(t, p.Stderr.String())
			return len(all) >= each.n, p.Stderr.String()
		})
		if strings.HasSuffix(each.command, "-w") {
			require.NoError(t, p.Cmd.Process.Kill())
		}
		<-p.Done
		for _, request := range all[:each.n] {
			fmt.Fprintf(&text, "$ kubectl %s\n%s\n", each.command, request)
		}
	}
	const file = "../../../../viz/console/kubectl.txt"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o644))
	}
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, text.String(), string(written), "%s is stale: in internal/check/compat run "+
		"go test ./kubectl -run TestTheConsole -update", file)
}
