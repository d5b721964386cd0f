// Command openapi makes the documents by which internal/server/apiserver describes its API: openapi_v3.json.gz,
// openapi_v2.json.gz and openapi_v2.pb.gz. The schemas are made from the Go types of k8s.io/api by upstream's own
// generator; the paths are those of the core/v1 document that client-go carries as test data, as far as listwatch
// serves them, in the forms in which it does.
//
// It also makes internal/server/apiserver/field_types.yaml.gz, which says of each field of these kinds how it is
// merged, out of what client-go knows for its apply configurations. Run it from the repository's root:
//
//	go run -C internal/check/tools ./openapi
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	source = "openapi/openapitest/testdata/api__v1_openapi.json" // in client-go
	output = "../../internal/server/apiserver/openapi_"

	typesSource = "applyconfigurations/internal/internal.go" // in client-go
	typesOutput = "../../internal/server/apiserver/field_types.yaml.gz"
)

// served are the paths we have. A path is served if it equals one of these after /watch/ is taken out.
var served = []string{
	"/api/v1/configmaps", "/api/v1/namespaces/{namespace}/configmaps",
	"/api/v1/namespaces/{namespace}/configmaps/{name}",
	"/api/v1/events", "/api/v1/namespaces/{namespace}/events", "/api/v1/namespaces/{namespace}/events/{name}",
	"/api/v1/namespaces", "/api/v1/namespaces/{name}", "/api/v1/namespaces/{name}/status",
	"/api/v1/namespaces/{name}/finalize",
	"/api/v1/nodes", "/api/v1/nodes/{name}", "/api/v1/nodes/{name}/status",
	"/api/v1/pods", "/api/v1/namespaces/{namespace}/pods", "/api/v1/namespaces/{namespace}/pods/{name}",
	"/api/v1/namespaces/{namespace}/pods/{name}/status", "/api/v1/namespaces/{namespace}/pods/{name}/binding",
	"/api/v1/",
}

// kinds that people may want explained although no body refers to them.
var kinds = []string{"Pod", "Node", "ConfigMap", "Namespace", "Event"}

// refused are content types that the real server takes or gives and ours does not.
var refused = []string{"application/apply-patch+cbor", "application/cbor", "application/cbor-seq",
	"application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf;stream=watch"}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

func run() error {
	clientGo, err := ofModule("k8s.io/client-go", "{{.Dir}}")
	if err != nil {
		return err
	}
	if err := writeFieldTypes(clientGo); err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(clientGo, source))
	if err != nil {
		return err
	}
	var document map[string]any
	if err := json.Unmarshal(data, &document); err != nil {
		return fmt.Errorf("parse %s: %w", source, err)
	}
	trim(document)
	generator, err := newGenerator()
	if err != nil {
		return err
	}
	defer generator.close()
	return writeDocuments(document, generator)
}

// writeDocuments completes a document of paths with schemas and writes it in all its forms.
func writeDocuments(document map[string]any, generator *generator) error {
	v3, v2, err := generator.schemasOf(referred(document))
	if err != nil {
		return err
	}
	document["components"] = map[string]any{"schemas": v3}
	document["info"] = map[string]any{"title": "listwatch", "version": "v1.37.2"}
	plain, err := json.Marshal(document) // keys sorted: the same input gives the same bytes
	if err != nil {
		return err
	}
	swagger, err := json.Marshal(swaggerOf(document, v2))
	if err != nil {
		return err
	}
	proto, err := generator.proto(swagger)
	if err != nil {
		return err
	}
	return errors.Join(write(output+"v3.json.gz", plain), write(output+"v2.json.gz", swagger), write(output+"v2.pb.gz",
		proto))
}

// write writes data, compressed.
func write(path string, data []byte) error {
	out, err := compress(data)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d bytes\n", path, len(out))
	return os.WriteFile(path, out, 0o644)
}

// writeFieldTypes cuts the YAML out of client-go's source and keeps the entries that our kinds refer to.
func writeFieldTypes(clientGo string) error {
	data, err := os.ReadFile(filepath.Join(clientGo, typesSource))
	if err != nil {
		return err
	}
	_, text, found := strings.Cut(string(data), "typed.YAMLObject(`types:\n")
	text, _, ended := strings.Cut(text, "`)")
	if !found || !ended {
		return fmt.Errorf("no schema in %s", typesSource)
	}
	entries := map[string]string{}
	for _, entry := range strings.Split("\n"+text, "\n- name: ")[1:] {
		name, _, _ := strings.Cut(entry, "\n")
		entries[name] = strings.TrimRight(entry, "\n")
	}
	wanted := map[string]bool{}
	collectTypes("io.k8s.api.coordination.v1.Lease", entries, wanted)
	for _, kind := range kinds {
		collectTypes("io.k8s.api.core.v1."+kind, entries, wanted)
	}
	var out strings.Builder
	out.WriteString("types:\n")
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if entries[name] == "" {
			return fmt.Errorf("no type %s in %s", name, typesSource)
		}
		out.WriteString("- name: " + entries[name] + "\n")
	}
	return write(typesOutput, []byte(out.String()))
}

var namedType = regexp.MustCompile(`(?:namedType|elementType): (\S+)`)

// collectTypes marks an entry and those it refers to.
func collectTypes(name string, entries map[string]string, wanted map[string]bool) {
	if wanted[name] {
		return
	}
	wanted[name] = true
	for _, match := range namedType.FindAllStringSubmatch(entries[name], -1) {
		collectTypes(match[1], entries, wanted)
	}
}

func trim(document map[string]any) {
	paths := document["paths"].(map[string]any)
	for path := range paths {
		if !slices.Contains(served, strings.Replace(path, "/watch/", "/", 1)) {
			delete(paths, path)
		}
	}
	dropContent(paths)
	delete(document, "components")
}

// referred returns the names of our kinds and of every type that a path refers to.
func referred(document map[string]any) []string {
	names := map[string]bool{}
	for _, kind := range kinds {
		names["io.k8s.api.core.v1."+kind] = true
	}
	collect(document["paths"], names)
	return slices.Sorted(maps.Keys(names))
}

// dropContent removes refused content types, wherever they stand.
func dropContent(node any) {
	switch node := node.(type) {
	case map[string]any:
		if content, ok := node["content"].(map[string]any); ok {
			for _, name := range refused {
				delete(content, name)
			}
		}
		for _, child := range node {
			dropContent(child)
		}
	case []any:
		for _, child := range node {
			dropContent(child)
		}
	}
}

// collect notes every schema that node refers to.
func collect(node any, names map[string]bool) {
	switch node := node.(type) {
	case map[string]any:
		if ref, ok := node["$ref"].(string); ok {
			names[strings.TrimPrefix(ref, "#/components/schemas/")] = true
		}
		for _, child := range node {
			collect(child, names)
		}
	case []any:
		for _, child := range node {
			collect(child, names)
		}
	}
}

func compress(plain []byte) ([]byte, error) {
	var out bytes.Buffer
	writer, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := writer.Write(plain); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
