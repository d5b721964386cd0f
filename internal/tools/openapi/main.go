// Command openapi makes chapters/08-handlers/openapi_v1.json.gz out of the core/v1 document that client-go carries as
// test data: only the paths that listwatch serves, only the forms in which it serves them, and only the schemas that
// these refer to.
//
// It also makes chapters/08-handlers/field_types.yaml.gz, which says of each field of these kinds how it is merged, out
// of what client-go knows for its apply configurations. Run it from the repository's root:
//
//	go run -C internal/tools ./openapi
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	source = "openapi/openapitest/testdata/api__v1_openapi.json" // in client-go
	output = "../../chapters/08-handlers/openapi_v1.json.gz"

	typesSource = "applyconfigurations/internal/internal.go" // in client-go
	typesOutput = "../../chapters/08-handlers/field_types.yaml.gz"
)

// served are the paths we have. A path is served if it equals one of these after /watch/ is taken out.
var served = []string{
	"/api/v1/configmaps", "/api/v1/namespaces/{namespace}/configmaps", "/api/v1/namespaces/{namespace}/configmaps/{name}",
	"/api/v1/events", "/api/v1/namespaces/{namespace}/events", "/api/v1/namespaces/{namespace}/events/{name}",
	"/api/v1/namespaces", "/api/v1/namespaces/{name}",
	"/api/v1/nodes", "/api/v1/nodes/{name}", "/api/v1/nodes/{name}/status",
	"/api/v1/pods", "/api/v1/namespaces/{namespace}/pods", "/api/v1/namespaces/{namespace}/pods/{name}",
	"/api/v1/namespaces/{namespace}/pods/{name}/status", "/api/v1/namespaces/{namespace}/pods/{name}/binding",
	"/api/v1/",
}

// kinds that people may want explained although no body refers to them.
var kinds = []string{"Pod", "Node", "ConfigMap", "Namespace", "Event"}

// refused are content types that the real server takes or gives and ours does not.
var refused = []string{"application/apply-patch+cbor", "application/cbor", "application/cbor-seq", "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf;stream=watch"}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

func run() error {
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/client-go")
	list.Dir = "../compat"
	dir, err := list.Output()
	if err != nil {
		return fmt.Errorf("find client-go: %w", err)
	}
	clientGo := strings.TrimSpace(string(dir))
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
	plain, err := json.Marshal(document) // keys sorted: the same input gives the same bytes
	if err != nil {
		return err
	}
	return write(output, plain)
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
	components := document["components"].(map[string]any)
	delete(components, "securitySchemes")
	schemas := components["schemas"].(map[string]any)
	wanted := map[string]bool{}
	for _, kind := range kinds {
		collect(map[string]any{"$ref": "#/components/schemas/io.k8s.api.core.v1." + kind}, schemas, wanted)
	}
	collect(paths, schemas, wanted)
	for name := range schemas {
		if !wanted[name] {
			delete(schemas, name)
		}
	}
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

// collect marks every schema that node refers to, and those that these refer to.
func collect(node any, schemas map[string]any, wanted map[string]bool) {
	switch node := node.(type) {
	case map[string]any:
		if ref, ok := node["$ref"].(string); ok {
			name := strings.TrimPrefix(ref, "#/components/schemas/")
			if !wanted[name] {
				wanted[name] = true
				collect(schemas[name], schemas, wanted)
			}
		}
		for _, child := range node {
			collect(child, schemas, wanted)
		}
	case []any:
		for _, child := range node {
			collect(child, schemas, wanted)
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
