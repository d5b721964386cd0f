//go:build full

package kubectl

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"

	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
)

// refused lists the content types that our documents leave out: we read no CBOR, and send neither CBOR nor protobuf.
var refused = []string{"application/apply-patch+cbor", "application/cbor", "application/cbor-seq",
	"application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf;stream=watch"}

// TestTheDocumentsAreThoseOfAKubeAPIServer compares the documents in which internal/server/apiserver describes its API
// with the real server's, limited to the paths and forms that we serve. A new kind requires -update, which writes the
// documents.
func TestTheDocumentsAreThoseOfAKubeAPIServer(t *testing.T) {
	flags := program.StartKubeAPIServer(t, program.StartEtcd(t))
	kubectl := program.KubectlFor(t, &program.Viz{URL: flags[1]})
	get := func(path string) string {
		return kubectl.Run(t, append(slices.Clone(flags[2:]), "get", "--raw", path)...)
	}
	program.Eventually(t, program.HangsAfter, func() (bool, string) {
		p := program.Start(t, kubectl.Command(append(slices.Clone(flags[2:]), "get", "--raw", "/readyz")...))
		return p.ExitCode(t, program.HangsAfter) == 0, p.Stderr.String()
	})
	v2 := trimmed(t, get("/openapi/v2"), "swagger")
	parsed := require.Value(openapi_v2.ParseDocument(v2))(t)
	asProto := require.Value(proto.MarshalOptions{Deterministic: true}.Marshal(parsed))(t)
	want := map[string][]byte{"v2.json.gz": v2, "v2.pb.gz": asProto}
	for _, root := range servedRoots {
		want["v3"+root+".json.gz"] = trimmed(t, get("/openapi/v3"+root), "openapi")
	}
	for name, document := range want {
		wantFresh(t, "openapi/"+name, document)
	}
}

// trimmed returns an OpenAPI document with only the served paths and what they refer to, without the refused content
// types, and with an info of our own. version names the field with OpenAPI's version: "swagger" or "openapi".
func trimmed(t *testing.T, document, version string) []byte {
	t.Helper()
	var whole map[string]any
	require.NoError(t, json.Unmarshal([]byte(document), &whole), version)
	paths := whole["paths"].(map[string]any)
	maps.DeleteFunc(paths, func(path string, _ any) bool { return !servedPaths[path] })
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
	written, err := json.Marshal(part) // sorts keys: the same input gives the same bytes
	require.NoError(t, err)
	return written
}

// TestKeptKindsAreThoseOfAKubeAPIServer plays the session apps on a real kube-apiserver.
func TestKeptKindsAreThoseOfAKubeAPIServer(t *testing.T) {
	flags := program.StartKubeAPIServer(t, program.StartEtcd(t))
	playFile(t, "testdata/apps.txtar", "", program.StartKubectlProxy(t, flags), false)
}
