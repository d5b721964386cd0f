package kubectl

import (
	"bytes"
	"compress/gzip"
	"encoding/gob"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/typed"

	registry "listwatch/chapters/07-registry"
	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/check/require"
)

// servedPaths are the paths that we have, as the documents of a kube-apiserver write them, and servedRoots the roots of
// their groups.
var servedPaths, servedRoots = func() (paths map[string]bool, roots []string) {
	paths = map[string]bool{
		"/api/v1/namespaces/{name}/finalize":                     true,
		"/api/v1/namespaces/{namespace}/bindings":                true,
		"/api/v1/namespaces/{namespace}/pods/{name}/binding":     true,
		"/api/v1/namespaces/{namespace}/pods/{name}/eviction":    true,
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
				paths[of] = true // of all namespaces
				of = root + "namespaces/{namespace}/" + r.Name
			}
			paths[of], paths[of+"/{name}"], paths[of+"/{name}/status"] = true, true, r.StatusStrategy != nil
		}
	}
	slices.Sort(roots)
	roots = slices.Compact(roots)
	for _, root := range roots {
		paths[root+"/"] = true // its discovery
	}
	return paths, roots
}()

// TestFieldTypesAreThoseOfClientGo compares what server-side apply knows of the fields of all kinds that are served
// with what client-go knows for apply configurations. With -update it writes that: a kind that is new needs it.
func TestFieldTypesAreThoseOfClientGo(t *testing.T) {
	folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/client-go").Output()
	require.NoError(t, err)
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)),
		"applyconfigurations/internal/internal.go"))
	require.NoError(t, err)
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
	for i := 0; i < len(wanted); i++ { // it grows by what each entry refers to
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
	parser, err := typed.NewParser(typed.YAMLObject(out))
	require.NoError(t, err)
	gob.Register(map[any]any{}) // the default of a field that is a struct
	var packed bytes.Buffer
	require.NoError(t, gob.NewEncoder(&packed).Encode(&parser.Schema))
	wantFresh(t, "field_types.gob.gz", packed.Bytes())
}

var namedType = regexp.MustCompile(`(?:namedType|elementType): (\S+)`)

// wantFresh compares a zipped file of internal/server/apiserver with what it is to hold, or with -update writes it.
func wantFresh(t *testing.T, name string, want []byte) {
	t.Helper()
	file := filepath.Join("../../../server/apiserver", name)
	if *update {
		var packed bytes.Buffer
		zip, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		require.NoError(t, err)
		_, err = zip.Write(want)
		require.NoError(t, err)
		require.NoError(t, zip.Close())
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, packed.Bytes(), 0o644))
	}
	packed, err := os.Open(file)
	require.NoError(t, err, "run this test with -update")
	defer packed.Close()
	zip, err := gzip.NewReader(packed)
	require.NoError(t, err)
	got, err := io.ReadAll(zip)
	require.True(t, err == nil && bytes.Equal(got, want), "%s is stale (%v): in internal/check/compat "+
		"run go test -tags full ./kubectl -run %s -update", name, err, t.Name())
}
