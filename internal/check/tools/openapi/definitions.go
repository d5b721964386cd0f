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
var schemasSource []byte

// typePackages hold every type that our kinds are made of.
var typePackages = []string{
	"k8s.io/api/core/v1", "k8s.io/apimachinery/pkg/apis/meta/v1", "k8s.io/apimachinery/pkg/api/resource",
	"k8s.io/apimachinery/pkg/runtime", "k8s.io/apimachinery/pkg/version", "k8s.io/apimachinery/pkg/util/intstr",
}

// generator is a module in a temporary folder, in which upstream's own openapi-gen reads the Go types, their comments
// and markers. That is how a kube-apiserver comes by its schemas, too.
type generator struct{ dir string }

// newGenerator prepares the module with the versions that internal/check/compat has.
func newGenerator() (*generator, error) {
	dir, err := os.MkdirTemp("", "openapi-")
	if err != nil {
		return nil, err
	}
	g := &generator{dir: dir}
	return g, g.prepare()
}

func (g *generator) close() { _ = os.RemoveAll(g.dir) }

func (g *generator) prepare() error {
	module := "module openapi\n\ngo 1.26.0\n"
	for _, path := range []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/kube-openapi"} {
		version, err := ofModule(path, "{{.Version}}")
		if err != nil {
			return err
		}
		module += "\nrequire " + path + " " + version + "\n"
	}
	for name, content := range map[string]string{
		"go.mod": module, "schemas.go": string(schemasSource),
		"definitions/doc.go": "package definitions\n",
		"tools/tools.go":     "package tools\n\nimport _ \"k8s.io/kube-openapi/cmd/openapi-gen\"\n",
	} {
		path := filepath.Join(g.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	if _, err := g.goCommand(nil, "mod", "tidy"); err != nil {
		return err
	}
	args := []string{
		"run", "k8s.io/kube-openapi/cmd/openapi-gen", "--output-dir", "definitions", "--output-pkg",
		"openapi/definitions",
		"--output-file", "definitions.go", "--go-header-file", os.DevNull, "--report-filename", os.DevNull,
	}
	_, err := g.goCommand(nil, append(args, typePackages...)...)
	return err
}

// goCommand runs go in the module and returns what it prints.
func (g *generator) goCommand(stdin []byte, args ...string) ([]byte, error) {
	command := exec.Command("go", args...)
	command.Dir, command.Stdin = g.dir, bytes.NewReader(stdin)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go %v: %w\n%s", args, err, stderr.Bytes())
	}
	return out, nil
}

// schemasOf returns the schemas of types and of what they refer to, for OpenAPI v3 and v2.
func (g *generator) schemasOf(names []string) (v3, v2 map[string]any, err error) {
	out, err := g.goCommand(nil, append([]string{"run", "."}, names...)...)
	if err != nil {
		return nil, nil, err
	}
	var both struct{ V3, V2 map[string]any }
	return both.V3, both.V2, json.Unmarshal(out, &both)
}

// proto returns an OpenAPI v2 document as protobuf.
func (g *generator) proto(document []byte) ([]byte, error) {
	return g.goCommand(document, "run", ".", "proto")
}

// ofModule returns what go list says of a module that internal/check/compat uses.
func ofModule(path, format string) (string, error) {
	list := exec.Command("go", "list", "-m", "-f", format, path)
	list.Dir = "../compat"
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", path, err)
	}
	return string(bytes.TrimSpace(out)), nil
}
