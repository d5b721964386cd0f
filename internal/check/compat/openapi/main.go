// Command openapi makes the documents by which internal/server/apiserver describes its API: openapi_v3.json.gz,
// openapi_v2.json.gz and openapi_v2.pb.gz. They are those that Kubernetes publishes with its sources, cut down to the paths
// and media types that listwatch serves.
//
// It also makes internal/server/apiserver/field_types.yaml.gz, which says of each field of these kinds how it is merged, out
// of what client-go knows for its apply configurations. Run it from the repository's root:
//
//	go run -C internal/check/compat ./openapi
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
)

const output = "../../server/apiserver/"

// served matches the paths we have.
var served = regexp.MustCompile(`^/api/v1/(watch/)?((namespaces/\{namespace\}/)?(configmaps|events|pods)(/\{name\})?` +
	`|namespaces/\{namespace\}/pods/\{name\}/(status|binding)|namespaces(/\{name\}(/status|/finalize)?)?|nodes(/\{name\}(/status)?)?)?$`)

// kinds are what people may want explained, whether a body refers to them or not.
var kinds = []string{"Pod", "Node", "ConfigMap", "Namespace", "Event"}

// refused matches media types that the real server takes or gives and ours does not.
var refused = regexp.MustCompile(`cbor|^application/vnd\.kubernetes\.protobuf`)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

func run() error {
	api, err := goCommand("list", "-m", "-f", "{{.Version}}", "k8s.io/api")
	if err != nil {
		return err
	}
	module, err := goCommand("mod", "download", "-json", "k8s.io/kubernetes@v1"+strings.TrimPrefix(string(api), "v0"))
	if err != nil {
		return err
	}
	var kubernetes struct{ Dir, Version string }
	if err := json.Unmarshal(module, &kubernetes); err != nil {
		return err
	}
	specs := filepath.Join(kubernetes.Dir, "api/openapi-spec")
	v3, err := document(filepath.Join(specs, "v3/api__v1_openapi.json"), kubernetes.Version)
	if err != nil {
		return err
	}
	v2, err := document(filepath.Join(specs, "swagger.json"), kubernetes.Version)
	if err != nil {
		return err
	}
	parsed, err := openapiv2.ParseDocument(v2)
	if err != nil {
		return err
	}
	v2Proto, err := proto.MarshalOptions{Deterministic: true}.Marshal(parsed)
	if err != nil {
		return err
	}
	types, err := fieldTypes()
	return errors.Join(err, write("openapi_v3.json.gz", v3), write("openapi_v2.json.gz", v2),
		write("openapi_v2.pb.gz", v2Proto), write("field_types.yaml.gz", types))
}

// goCommand runs go and returns what it prints.
func goCommand(args ...string) ([]byte, error) {
	command := exec.Command("go", args...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go %v: %w", args, err)
	}
	return bytes.TrimSpace(out), nil
}

// write writes data, compressed.
func write(name string, data []byte) error {
	var out bytes.Buffer
	writer, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := writer.Write(data); err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	fmt.Printf("%s: %d bytes\n", name, out.Len())
	return os.WriteFile(output+name, out.Bytes(), 0o644)
}

// document reads a description of an API and returns what of it is ours. Its keys are sorted: the same input gives the
// same bytes.
func document(file, version string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var doc map[string]any
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("parse %s: %w", file, err)
	}
	doc["info"] = map[string]any{"title": "listwatch", "version": version}
	for _, name := range []string{"security", "securityDefinitions"} {
		delete(doc, name)
	}
	paths := doc["paths"].(map[string]any)
	maps.DeleteFunc(paths, func(path string, _ any) bool { return !served.MatchString(path) })
	dropRefused(paths)
	schemas, _ := doc["definitions"].(map[string]any) // of v2
	if components, ok := doc["components"].(map[string]any); ok {
		delete(components, "securitySchemes")
		schemas = components["schemas"].(map[string]any)
	}
	shared, _ := doc["parameters"].(map[string]any) // of v2
	wanted := map[string]bool{}
	for _, kind := range kinds {
		collect(map[string]any{"$ref": "io.k8s.api.core.v1." + kind}, schemas, shared, wanted)
	}
	collect(paths, schemas, shared, wanted)
	for _, all := range []map[string]any{schemas, shared} {
		maps.DeleteFunc(all, func(name string, _ any) bool { return !wanted[name] })
	}
	return json.Marshal(doc)
}

// dropRefused removes refused media types, wherever they stand: as keys in v3, in lists in v2.
func dropRefused(node any) {
	switch node := node.(type) {
	case map[string]any:
		maps.DeleteFunc(node, func(key string, _ any) bool { return refused.MatchString(key) })
		for _, name := range []string{"consumes", "produces"} {
			if types, ok := node[name].([]any); ok {
				node[name] = slices.DeleteFunc(types, func(each any) bool { return refused.MatchString(each.(string)) })
			}
		}
		for _, child := range node {
			dropRefused(child)
		}
	case []any:
		for _, child := range node {
			dropRefused(child)
		}
	}
}

// collect marks every schema and every shared parameter that node refers to, directly or through others.
func collect(node any, schemas, shared map[string]any, wanted map[string]bool) {
	switch node := node.(type) {
	case map[string]any:
		if ref, ok := node["$ref"].(string); ok {
			name := ref[strings.LastIndexByte(ref, '/')+1:]
			if !wanted[name] {
				wanted[name] = true
				collect(schemas[name], schemas, shared, wanted)
				collect(shared[name], schemas, shared, wanted)
			}
		}
		for _, child := range node {
			collect(child, schemas, shared, wanted)
		}
	case []any:
		for _, child := range node {
			collect(child, schemas, shared, wanted)
		}
	}
}

// fieldTypes cuts the YAML out of client-go's source and keeps the entries that our kinds refer to.
func fieldTypes() ([]byte, error) {
	dir, err := goCommand("list", "-m", "-f", "{{.Dir}}", "k8s.io/client-go")
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(string(dir), "applyconfigurations/internal/internal.go"))
	if err != nil {
		return nil, err
	}
	_, text, found := strings.Cut(string(data), "typed.YAMLObject(`types:\n")
	text, _, ended := strings.Cut(text, "`)")
	if !found || !ended {
		return nil, errors.New("no schema in client-go's apply configurations")
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
	out := "types:\n"
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if entries[name] == "" {
			return nil, fmt.Errorf("no type %s in client-go's apply configurations", name)
		}
		out += "- name: " + entries[name] + "\n"
	}
	return []byte(out), nil
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
