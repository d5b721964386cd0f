package main

import (
	"bytes"
	_ "embed" // for the source of the helper
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed schemas.go.txt
var schemasSource string

// typePackages hold every type that our kinds are made of.
var typePackages = []string{
	"k8s.io/api/core/v1", "k8s.io/apimachinery/pkg/apis/meta/v1", "k8s.io/apimachinery/pkg/api/resource",
	"k8s.io/apimachinery/pkg/runtime", "k8s.io/apimachinery/pkg/version", "k8s.io/apimachinery/pkg/util/intstr",
}

// generator is the folder of a module in which upstream's own openapi-gen reads the Go types, their comments and
// markers. That is how a kube-apiserver comes by its schemas, too.
type generator string

// schemasOf returns the schemas of types and of what they refer to, for OpenAPI v3 and v2. It makes the module, with
// the versions that internal/check/compat has.
func (g generator) schemasOf(names []string) (v3, v2 map[string]any, err error) {
	module := "module openapi\n\ngo 1.26.0\n"
	for _, path := range []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/kube-openapi"} {
		version, err := ofModule(path, "{{.Version}}")
		if err != nil {
			return nil, nil, err
		}
		module += "\nrequire " + path + " " + version + "\n"
	}
	for name, content := range map[string]string{
		"go.mod": module, "schemas.go": schemasSource, "definitions/doc.go": "package definitions\n",
		"tools/tools.go": "package tools\n\nimport _ \"k8s.io/kube-openapi/cmd/openapi-gen\"\n",
	} {
		path := filepath.Join(string(g), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, nil, err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return nil, nil, err
		}
	}
	var out []byte
	for _, args := range [][]string{
		{"mod", "tidy"},
		append([]string{"run", "k8s.io/kube-openapi/cmd/openapi-gen", "--output-dir", "definitions",
			"--output-pkg", "openapi/definitions", "--output-file", "definitions.go",
			"--go-header-file", os.DevNull, "--report-filename", os.DevNull}, typePackages...),
		append([]string{"run", "."}, names...),
	} {
		if out, err = g.run(nil, args...); err != nil {
			return nil, nil, err
		}
	}
	var both struct{ V3, V2 map[string]any }
	err = json.Unmarshal(out, &both)
	return both.V3, both.V2, err
}

// run runs go in the module and returns what it prints.
func (g generator) run(stdin []byte, args ...string) ([]byte, error) {
	command := exec.Command("go", args...)
	command.Dir, command.Stdin = string(g), bytes.NewReader(stdin)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go %v: %w\n%s", args, err, stderr.Bytes())
	}
	return out, nil
}

// ofModule returns what go list says of a module that internal/check/compat uses.
func ofModule(path, format string) (string, error) {
	out, err := generator("../compat").run(nil, "list", "-m", "-f", format, path)
	return string(bytes.TrimSpace(out)), err
}
