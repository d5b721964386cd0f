//go:build full

package kubectl

import (
	"bytes"
	"compress/gzip"
	"encoding/gob"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

// served are the paths we have.
var served = regexp.MustCompile(`^/api/v1/(watch/)?(namespaces/\{namespace\}/)?` +
	`((configmaps|events|namespaces|nodes|pods|secrets|serviceaccounts|services|replicationcontrollers|` +
	`persistentvolumes|persistentvolumeclaims)(/\{name\}(/status)?)?|namespaces/\{name\}/finalize|bindings|` +
	`pods/\{name\}/(binding|eviction))?$`)

// kinds that people may want explained although no body refers to them.
var kinds = []string{"Pod", "Node", "ConfigMap", "Namespace", "Event"}

// kept are the kinds that no document describes and that can be applied all the same.
var kept = []string{
	"coordination.v1.Lease", "events.v1.Event",
	"Secret", "ServiceAccount", "Service", "ReplicationController", "PersistentVolume", "PersistentVolumeClaim",
	"apps.v1.Deployment", "apps.v1.ReplicaSet", "apps.v1.StatefulSet", "policy.v1.PodDisruptionBudget",
	"storage.v1.StorageClass", "storage.v1.CSINode", "storage.v1.CSIDriver", "storage.v1.CSIStorageCapacity",
	"storage.v1.VolumeAttachment",
	"resource.v1.ResourceClaim", "resource.v1.ResourceSlice", "resource.v1.DeviceClass", "resource.v1.DeviceTaintRule",
}

// refused are content types that the real server takes or gives and ours does not.
var refused = []string{"application/apply-patch+cbor", "application/cbor", "application/cbor-seq",
	"application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf;stream=watch"}

// TestTheDocumentsAreThoseOfAKubeAPIServer compares the documents by which internal/server/apiserver describes its API
// with those of the real one, as far as we serve their paths, in the forms in which we do; and what says how each field
// is merged with what client-go knows.
func TestTheDocumentsAreThoseOfAKubeAPIServer(t *testing.T) {
	flags := program.StartKubeAPIServer(t, program.StartEtcd(t))
	kubectl := program.KubectlFor(t, &program.Viz{URL: flags[1]})
	get := func(path string) string {
		return kubectl.Run(t, append(slices.Clone(flags[2:]), "get", "--raw", path)...)
	}
	program.Eventually(t, program.ReadyWithin, func() (bool, string) {
		p := program.Start(t, kubectl.Command(append(slices.Clone(flags[2:]), "get", "--raw", "/readyz")...))
		return p.ExitCode(t, program.HangsAfter) == 0, p.Stderr.String()
	})
	v2 := trimmed(t, get("/openapi/v2"), "swagger", "#/definitions/")
	parsed, err := openapi_v2.ParseDocument(v2)
	require.NoError(t, err)
	asProto, err := proto.MarshalOptions{Deterministic: true}.Marshal(parsed)
	require.NoError(t, err)
	for name, want := range map[string][]byte{
		"openapi_v3.json.gz": trimmed(t, get("/openapi/v3/api/v1"), "openapi", "#/components/schemas/"),
		"openapi_v2.json.gz": v2, "openapi_v2.pb.gz": asProto, "field_types.gob.gz": fieldTypes(t),
	} {
		file := filepath.Join("../../../server/apiserver", name)
		if *update {
			var packed bytes.Buffer
			zip, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
			require.NoError(t, err)
			_, err = zip.Write(want)
			require.NoError(t, err)
			require.NoError(t, zip.Close())
			require.NoError(t, os.WriteFile(file, packed.Bytes(), 0o644))
		}
		packed, err := os.Open(file)
		require.NoError(t, err)
		defer packed.Close()
		zip, err := gzip.NewReader(packed)
		require.NoError(t, err)
		got, err := io.ReadAll(zip)
		require.True(t, err == nil && bytes.Equal(got, want), "%s is stale (%v): run this test with -update", name, err)
	}
}

// trimmed returns a document with the paths that are served, the schemas of kinds, and what these refer to. Its field
// version says which form it has.
func trimmed(t *testing.T, document, version, schemas string) []byte {
	t.Helper()
	var whole map[string]any
	require.NoError(t, json.Unmarshal([]byte(document), &whole), version)
	paths := whole["paths"].(map[string]any)
	maps.DeleteFunc(paths, func(path string, _ any) bool { return !served.MatchString(path) })
	part := map[string]any{version: whole[version], "paths": paths,
		"info": map[string]any{"title": "listwatch", "version": "v1.37.2"}}
	copied := map[string]bool{}
	var follow func(node any)
	refer := func(ref string) {
		if copied[ref] {
			return
		}
		copied[ref] = true
		from, to := whole, part
		names := strings.Split(strings.TrimPrefix(ref, "#/"), "/")
		for _, name := range names[:len(names)-1] {
			if to[name] == nil {
				to[name] = map[string]any{}
			}
			from, to = from[name].(map[string]any), to[name].(map[string]any)
		}
		last := names[len(names)-1]
		to[last] = from[last]
		follow(to[last])
	}
	follow = func(node any) {
		switch node := node.(type) {
		case map[string]any:
			if ref, ok := node["$ref"].(string); ok {
				refer(ref)
			}
			for name, child := range node {
				if types, ok := child.(map[string]any); ok && name == "content" {
					maps.DeleteFunc(types, func(each string, _ any) bool { return slices.Contains(refused, each) })
				} else if types, ok := child.([]any); ok && (name == "consumes" || name == "produces") {
					node[name] = slices.DeleteFunc(types, func(each any) bool {
						return slices.Contains(refused, each.(string))
					})
				}
				follow(child)
			}
		case []any:
			for _, child := range node {
				follow(child)
			}
		}
	}
	follow(paths)
	for _, kind := range kinds {
		refer(schemas + "io.k8s.api.core.v1." + kind)
	}
	written, err := json.Marshal(part) // keys sorted: the same input gives the same bytes
	require.NoError(t, err)
	return written
}

// fieldTypes cuts the YAML out of client-go's source, keeps the entries that our kinds refer to, which is what is known
// there for apply configurations, and returns them as gob.
func fieldTypes(t *testing.T) []byte {
	t.Helper()
	folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/client-go").Output()
	require.NoError(t, err)
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "applyconfigurations/internal/internal.go"))
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
	for _, kind := range slices.Concat(kinds, kept) {
		if !strings.Contains(kind, ".") {
			kind = "core.v1." + kind
		}
		wanted = append(wanted, "io.k8s.api."+kind)
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
	return packed.Bytes()
}

var namedType = regexp.MustCompile(`(?:namedType|elementType): (\S+)`)
