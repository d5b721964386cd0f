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
	source      = "openapi/openapitest/testdata/api__v1_openapi.json" // in client-go
	typesSource = "applyconfigurations/internal/internal.go"          // in client-go
	output      = "../../server/apiserver/"
)

// served are the paths we have.
var served = regexp.MustCompile(`^/api/v1/(watch/)?(namespaces/\{namespace\}/)?` +
	`((configmaps|events|namespaces|nodes|pods)(/\{name\}(/status)?)?|namespaces/\{name\}/finalize|pods/\{name\}/binding)?$`)

// kinds that people may want explained although no body refers to them.
var kinds = []string{"Pod", "Node", "ConfigMap", "Namespace", "Event"}

// kept are the kinds that no document describes and that can be applied all the same.
var kept = []string{
	"coordination.v1.Lease", "events.v1.Event",
	"Secret", "ServiceAccount", "Service", "ReplicationController", "PersistentVolume", "PersistentVolumeClaim",
	"apps.v1.ReplicaSet", "apps.v1.StatefulSet", "policy.v1.PodDisruptionBudget",
	"storage.v1.StorageClass", "storage.v1.CSINode", "storage.v1.CSIDriver", "storage.v1.CSIStorageCapacity",
	"storage.v1.VolumeAttachment",
	"resource.v1.ResourceClaim", "resource.v1.ResourceSlice", "resource.v1.DeviceClass", "resource.v1.DeviceTaintRule",
}

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
	dir, err := os.MkdirTemp("", "openapi-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return writeDocuments(document, generator(dir))
}

// writeDocuments trims a document to the paths that are served, completes it with schemas and writes it in all forms.
func writeDocuments(document map[string]any, generator generator) error {
	maps.DeleteFunc(document["paths"].(map[string]any), func(path string, _ any) bool {
		return !served.MatchString(path)
	})
	names := map[string]bool{} // of the schemas that are needed
	for _, kind := range kinds {
		names["io.k8s.api.core.v1."+kind] = true
	}
	walk(document["paths"], func(node map[string]any) {
		if content, ok := node["content"].(map[string]any); ok {
			maps.DeleteFunc(content, func(name string, _ any) bool { return slices.Contains(refused, name) })
		}
		if ref, ok := node["$ref"].(string); ok {
			names[strings.TrimPrefix(ref, "#/components/schemas/")] = true
		}
	})
	v3, v2, err := generator.schemasOf(slices.Sorted(maps.Keys(names)))
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
	proto, err := generator.run(swagger, "run", ".", "proto")
	return errors.Join(err, write("openapi_v3.json.gz", plain), write("openapi_v2.json.gz", swagger),
		write("openapi_v2.pb.gz", proto))
}

// walk calls visit for every object in a document, the outer before the inner ones.
func walk(node any, visit func(map[string]any)) {
	switch node := node.(type) {
	case map[string]any:
		visit(node)
		for _, child := range node {
			walk(child, visit)
		}
	case []any:
		for _, child := range node {
			walk(child, visit)
		}
	}
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
		if entries[name] == "" {
			return fmt.Errorf("no type %s in %s", name, typesSource)
		}
		out += "- name: " + entries[name] + "\n"
	}
	return write("field_types.yaml.gz", []byte(out))
}

var namedType = regexp.MustCompile(`(?:namedType|elementType): (\S+)`)

// write writes data, compressed, beside the code that serves it.
func write(name string, data []byte) error {
	var out bytes.Buffer
	writer, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return err
	}
	_, err = writer.Write(data)
	if err := errors.Join(err, writer.Close()); err != nil {
		return err
	}
	fmt.Printf("%s: %d bytes\n", name, out.Len())
	return os.WriteFile(output+name, out.Bytes(), 0o644)
}
