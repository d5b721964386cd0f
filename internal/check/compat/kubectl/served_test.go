package kubectl

import (
	"bytes"
	"compress/gzip"
	"encoding/gob"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	registry "listwatch/chapters/07-registry"
	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

// servedPaths holds the paths that we serve, written as in a kube-apiserver's documents. servedRoots lists the roots of
// these paths' groups.
var servedPaths, servedRoots = func() (paths map[string]bool, roots []string) {
	paths = map[string]bool{
		"/api/v1/namespaces/{name}/finalize":                     true,
		"/api/v1/namespaces/{namespace}/bindings":                true,
		"/api/v1/namespaces/{namespace}/pods/{name}/binding":     true,
		"/api/v1/namespaces/{namespace}/pods/{name}/eviction":    true,
		"/api/v1/namespaces/{namespace}/pods/{name}/log":         true,
		"/apis/authentication.k8s.io/v1/selfsubjectreviews":      true,
		"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": true,
		"/apis/authorization.k8s.io/v1/selfsubjectrulesreviews":  true,
	}
	roots = []string{"/apis/authentication.k8s.io/v1", "/apis/authorization.k8s.io/v1"}
	for _, r := range registry.Resources() {
		roots = append(roots, handlers.Root(r))
		for _, root := range []string{handlers.Root(r) + "/", handlers.Root(r) + "/watch/"} {
			of := root + r.Name
			if r.Namespaced {
				paths[of] = true // all namespaces
				of = root + "namespaces/{namespace}/" + r.Name
			}
			paths[of], paths[of+"/{name}"], paths[of+"/{name}/status"] = true, true, r.StatusStrategy != nil
			paths[of+"/{name}/scale"] = r.GroupVersion.Group == "apps"
		}
	}
	slices.Sort(roots)
	roots = slices.Compact(roots)
	for _, root := range roots {
		paths[root+"/"] = true // the group's discovery
	}
	return paths, roots
}()

// TestFieldTypesAreThoseOfClientGo compares the field types that server-side apply uses for the served kinds with those
// of client-go's apply configurations. A new kind requires -update, which writes the types.
func TestFieldTypesAreThoseOfClientGo(t *testing.T) {
	folder := require.Value(exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/client-go").Output())(t)
	data := require.Value(os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)),
		"applyconfigurations/internal/internal.go")))(t)
	_, text, found := strings.Cut(string(data), "typed.YAMLObject(`types:\n")
	text, _, ended := strings.Cut(text, "`)")
	require.True(t, found && ended, "client-go has no schema")
	entries := map[string]string{}
	for _, entry := range strings.Split("\n"+text, "\n- name: ")[1:] {
		name, _, _ := strings.Cut(entry, "\n")
		entries[name] = strings.TrimRight(entry, "\n")
	}
	var wanted []string
	for _, r := range registry.Resources() {
		group, _, _ := strings.Cut(r.GroupVersion.Group, ".")
		if group == "" {
			group = "core"
		}
		wanted = append(wanted, strings.Join([]string{"io.k8s.api", group, r.GroupVersion.Version, r.Kind}, "."))
	}
	for i := 0; i < len(wanted); i++ { // each entry's references extend the list
		for _, match := range namedType.FindAllStringSubmatch(entries[wanted[i]], -1) {
			if !slices.Contains(wanted, match[1]) {
				wanted = append(wanted, match[1])
			}
		}
	}
	slices.Sort(wanted)
	out := "types:\n"
	for _, name := range wanted {
		require.True(t, entries[name] != "", "client-go has no type %s", name)
		out += "- name: " + entries[name] + "\n"
	}
	parser := require.Value(typed.NewParser(typed.YAMLObject(out)))(t)
	gob.Register(map[any]any{}) // a struct field's default has this type
	var packed bytes.Buffer
	require.NoError(t, gob.NewEncoder(&packed).Encode(&parser.Schema))
	wantFresh(t, "field_types.gob.gz", packed.Bytes())
}

var namedType = regexp.MustCompile(`(?:namedType|elementType): (\S+)`)

// wantFresh compares a gzipped file of internal/server/apiserver with want. With -update it first writes the file.
func wantFresh(t *testing.T, name string, want []byte) {
	t.Helper()
	file := filepath.Join("../../../server/apiserver", name)
	if *update {
		var packed bytes.Buffer
		zip := require.Value(gzip.NewWriterLevel(&packed, gzip.BestCompression))(t)
		require.Value(zip.Write(want))(t)
		require.NoError(t, zip.Close())
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, packed.Bytes(), 0o644))
	}
	packed, err := os.Open(file)
	require.NoError(t, err, "run this test with -update")
	defer packed.Close()
	zip := require.Value(gzip.NewReader(packed))(t)
	got, err := io.ReadAll(zip)
	require.True(t, err == nil && bytes.Equal(got, want), "%s is stale (%v): in internal/check/compat "+
		"run go test -tags full ./kubectl -run %s -update", name, err, t.Name())
}

// sent matches a request in the output of kubectl -v=8: the body (quoted or indented), method, URL and headers.
var sent = regexp.MustCompile(`"Request Body" body=(?:<\n((?:\t.*\n)+) >|(".*"))\n` +
	`(?:[^\t].*\n)*?.*"Request" verb="(\w+)" url="http://[^/]+(\S+)" headers=<\n((?:\t.*\n)+) >`)

// ours matches the lines of the two headers that the console's requests leave out.
var ours = regexp.MustCompile(`(?m)^(User-Agent|Accept-Encoding):.*\n`)

// requests returns the requests for pods in kubectl's output, in the form that the console reads.
func requests(t *testing.T, said string) (all []string) {
	t.Helper()
	for _, match := range sent.FindAllStringSubmatch(said, -1) {
		body, header := strings.TrimSpace(match[1]), strings.ReplaceAll("\n"+match[5], "\n\t", "\n")
		if match[2] != "" {
			body = require.Value(strconv.Unquote(match[2]))(t)
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

// TestTheConsoleOffersWhatKubectlSends compares the console's ready-made requests with those of kubectl -v=8.
func TestTheConsoleOffersWhatKubectlSends(t *testing.T) {
	t.Parallel()
	k := program.KubectlFor(t, program.StartViz(t, "-demo=false", "-flight=off"))
	manifest := filepath.Join(t.TempDir(), "pod.yaml")
	require.NoError(t, os.WriteFile(manifest, []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"+
		"spec: {containers: [{name: web, image: example.com/web}]}\n"), 0o600))
	var text strings.Builder
	for _, each := range []struct {
		command string
		n       int // requests to compare; later requests only wait
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
	written := require.Value(os.ReadFile(file))(t)
	assert.Equal(t, text.String(), string(written), "%s is stale: in internal/check/compat run "+
		"go test ./kubectl -run TestTheConsole -update", file)
}

// volatile lists patterns that match different texts in each run, and the words that replace them.
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
	// client-go's log lines
	{regexp.MustCompile(`^[IWE]\d{4} \d\d:\d\d:\d\d\.\d+ .*$`), ""},
}

// age matches the time since an event, as kubectl and servers write it.
var age = regexp.MustCompile(`(^| |\()\d+[smhd](\d+[smh])?( |$|\))`)

// normalise replaces the volatile parts of an output.
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

// header matches the first line of a table with ages. columnStart matches the gap before a column and its first letter.
var (
	header      = regexp.MustCompile(`^(NAME|NAMESPACE|EVENT|LAST SEEN)  .*\b(AGE|TYPE)\b`)
	columnStart = regexp.MustCompile(` {2,}(\S)`)
)

// realign lays out a table again, up to an empty line, with equally long ages, because longer ages widen a column. It
// leaves a table alone if a line does not fit the columns, as in a watch.
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

// dialects lists patterns for outputs that depend on kubectl's version, and the words that replace the matches.
var dialects = []struct {
	pattern *regexp.Regexp
	word    string
}{
	{regexp.MustCompile(`( deleted) from \S+ namespace`), "$1"}, // since 1.34
	{regexp.MustCompile(`(?m)^ *Kube-Proxy Version:.*\n`), ""},  // until 1.32
	{regexp.MustCompile(`\n+(\nBinaryData\n)`), "$1"},           // 1.27 and later print one more empty line
	// the error for a connection that the server does not upgrade
	{regexp.MustCompile(`(! error: error upgrading connection: )unable to upgrade connection: `), "$1"},
	{regexp.MustCompile(`! error: unable to upgrade connection(: the server could not find)`), "! Error from server " +
		"(NotFound)$1"},
	{regexp.MustCompile(`(ephemeral containers are disabled .*\))\.`), "$1"},
	{regexp.MustCompile(`(?m)^! All commands and output from this session will be recorded .*\n`), ""}, // since 1.32
	{regexp.MustCompile(`( is not valid for pod \S+) out of:.*`), "$1"},
	{regexp.MustCompile(`\n *(Node-Selectors|Tolerations):\s*<none>`), ""}, // some versions omit these in pod templates
}

// dialect replaces the parts of an output that depend on kubectl's version.
func dialect(text string) string {
	for _, d := range dialects {
		text = d.pattern.ReplaceAllString(text, d.word)
	}
	return text
}

// address matches an address that the real server allocates for a service.
var address = regexp.MustCompile(`\b10\.0\.0\.\d+\b`)

// alike removes what differs between the servers: addresses of services, the service kubernetes, and widths of columns.
func alike(output string) string {
	text := ""
	for line := range strings.Lines(address.ReplaceAllString(output, "<none>")) {
		if !strings.HasPrefix(line, "kubernetes ") {
			text += strings.Join(strings.Fields(line), " ") + "\n"
		}
	}
	return text
}

// asOpenAPIv2 makes kubectl explain use OpenAPI v2. kubectl 1.26 always uses it and does not have the flag.
const asOpenAPIv2 = " --output=plaintext-openapiv2"

// knowsOpenAPIv3 reports whether a kubectl has the flag of asOpenAPIv2.
func knowsOpenAPIv3(t *testing.T, binary string) bool {
	t.Helper()
	help := require.Value(exec.Command(binary, "explain", "--help").Output())(t)
	return strings.Contains(string(help), asOpenAPIv2[:len(" --output=")])
}

// spoken returns the command for a kubectl that explains only by OpenAPI v2. ok is false for explanations by v3; the
// sessions contain each explanation by v2, too.
func spoken(command string) (_ string, ok bool) {
	plain := strings.Replace(command, asOpenAPIv2, "", 1)
	return plain, plain != command || !strings.HasPrefix(command, "kubectl explain ")
}

// editVariable is the environment variable that makes this test binary an editor, so that the tests need no shell. With
// the value old/new, the binary replaces every old in the file that its last argument names.
const editVariable = "EDIT"

func TestMain(m *testing.M) {
	if change, ok := os.LookupEnv(editVariable); ok {
		if err := edit(os.Args[len(os.Args)-1], change); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// Six sessions may run at once, because a session mostly waits for the program and kubectl.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

func edit(file, change string) error {
	old, replacement, ok := strings.Cut(change, "/")
	if !ok {
		return fmt.Errorf("%s=%s: want old/new", editVariable, change)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(strings.ReplaceAll(string(text), old, replacement)), 0o600)
}
