package main

import (
	"archive/zip"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// start is the first page of a bag.
//
//go:embed START.txt
var start []byte

// pack writes the bag, of which the sources are a part already.
func (m *maker) pack(ctx context.Context, file string) error {
	bag := filepath.Join(m.temp, "bag")
	if err := m.modules(ctx, filepath.Join(bag, "modules")); err != nil {
		return err
	}
	if err := m.site(ctx, filepath.Join(bag, "site")); err != nil {
		return err
	}
	for _, t := range m.targets {
		if err := m.programs(ctx, t, filepath.Join(bag, "bin", t.String()), viz, kubectl, delve); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(bag, "START.txt"), start, 0o644); err != nil {
		return err
	}
	return zipFolder(bag, file)
}

// site moves the site, with the machine that runs in a tab, to dir; the sources stay as they were.
func (m *maker) site(ctx context.Context, dir string) error {
	fmt.Fprintln(m.out, "build the site")
	if _, err := m.command(ctx, nil, "make", "site"); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(filepath.Join(m.root, "bin")), os.Rename(filepath.Join(m.root, "site"), dir))
}

// modules makes the folder to, a GOPROXY with all that the three modules of the sources need: a module cache keeps what
// it downloads in that form. It asks the cache of this computer first.
func (m *maker) modules(ctx context.Context, to string) error {
	proxy, err := m.command(ctx, nil, "go", "env", "GOMODCACHE", "GOPROXY")
	if err != nil {
		return err
	}
	ours, others, _ := strings.Cut(proxy, "\n")
	fresh := filepath.Join(m.temp, "modcache")
	env := []string{"GOMODCACHE=" + fresh, "GOFLAGS=-modcacherw", "GOPROXY=file://" + slashed(ours) +
		"/cache/download," + others}
	for _, module := range []string{".", "internal/check/compat", "internal/check/tools"} {
		fmt.Fprintln(m.out, "download the modules of", module)
		if _, err := m.command(ctx, env, "go", "-C", module, "mod", "download"); err != nil {
			return err
		}
	}
	return os.Rename(filepath.Join(fresh, "cache", "download"), to)
}

// slashed is a path as it stands in a file URL: /D:/x on Windows.
func slashed(name string) string { return "/" + strings.TrimPrefix(filepath.ToSlash(name), "/") }

// programs builds programs for a target into dir, and adds our licence and those of all that is linked into them. No
// path and no state of the checkout is in them.
func (m *maker) programs(ctx context.Context, t target, dir string, programs ...program) error {
	var licences strings.Builder
	for _, p := range programs {
		fmt.Fprintf(m.out, "build %s for %s\n", p.name, t)
		file := filepath.Join(dir, p.name)
		if t.goos == "windows" {
			file += ".exe"
		}
		linked := "-ldflags=-s -w -X main.releaseName=" + m.version + p.linked
		if _, err := m.goFor(ctx, t, p, "build", "-trimpath", linked, "-o", file); err != nil {
			return err
		}
		text, err := m.licences(ctx, t, p)
		if err != nil {
			return err
		}
		licences.WriteString(text)
	}
	ours, err := os.ReadFile(filepath.Join(m.root, "LICENSE"))
	return errors.Join(err, os.WriteFile(filepath.Join(dir, "LICENSE"), ours, 0o644),
		os.WriteFile(filepath.Join(dir, "THIRD-PARTY.txt"), []byte(licences.String()), 0o644))
}

// machineLicences writes the licences of the machine of a tab into file.
func (m *maker) machineLicences(ctx context.Context, file string) error {
	text, err := m.licences(ctx, target{"js", "wasm"}, machine)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

var licenceName = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice)`)

// licences returns the licences and notices of all that a program is made of. A module without one is an error: it may
// not be handed out.
func (m *maker) licences(ctx context.Context, t target, p program) (string, error) {
	list, err := m.goFor(ctx, t, p, "list", "-deps", "-f",
		"{{with .Module}}{{if not .Main}}{{if not .Replace}}{{.Path}}@{{.Version}}\t{{.Dir}}{{end}}{{end}}{{end}}")
	if err != nil {
		return "", err
	}
	goRoot, err := m.command(ctx, nil, "go", "env", "GOVERSION", "GOROOT")
	if err != nil {
		return "", err
	}
	lines := append(strings.Split(list, "\n"), strings.Replace(goRoot, "\n", "\t", 1))
	slices.Sort(lines)
	var text strings.Builder
	fmt.Fprintf(&text, "%s contains code of others, under these licences.\n\n", p.name)
	for _, line := range slices.Compact(lines) {
		module, dir, found := strings.Cut(line, "\t")
		if !found {
			continue // ours, or the standard library
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return "", err
		}
		before := text.Len()
		for _, entry := range entries {
			if entry.Type().IsRegular() && licenceName.MatchString(entry.Name()) {
				licence, err := os.ReadFile(filepath.Join(dir, entry.Name()))
				if err != nil {
					return "", err
				}
				fmt.Fprintf(&text, "%s (%s)\n\n%s\n%s\n\n", module, entry.Name(), licence, strings.Repeat("=", 80))
			}
		}
		if text.Len() == before {
			return "", fmt.Errorf("%s has no licence in %s", module, dir)
		}
	}
	return text.String(), nil
}

// zipFolder writes the files below dir into an archive.
func zipFolder(dir, name string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	out := zip.NewWriter(file)
	if err := errors.Join(out.AddFS(os.DirFS(dir)), out.Close(), file.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}
