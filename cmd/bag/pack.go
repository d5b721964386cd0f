package main

import (
	"archive/zip"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"listwatch/internal/play/lab"
)

// start is the first page of a bag.
//
//go:embed START.txt
var start []byte

// pack writes a bag. All is made from what is committed, whatever is edited meanwhile.
func (m *maker) pack(ctx context.Context, to io.Writer) (err error) {
	// Without a checkout of git it is "", and viz says that it is devel.
	m.version, _ = m.command(ctx, nil, "git", "describe", "--tags", "--always", "--dirty")
	temp, err := os.MkdirTemp("", "listwatch-bag-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	bag, committed := filepath.Join(temp, "bag"), filepath.Join(temp, "bag", "listwatch")
	if err := lab.Copy(m.root, committed); err != nil {
		return err
	}
	m.root = committed
	if err := m.modules(ctx, filepath.Join(temp, "modcache"), filepath.Join(bag, "modules")); err != nil {
		return err
	}
	fmt.Fprintln(m.out, "build the site")
	if _, err := m.command(ctx, nil, "make", "site"); err != nil {
		return err
	}
	for _, target := range m.targets {
		if err := m.programs(ctx, target, filepath.Join(bag, "bin", strings.Replace(target, "/", "-", 1))); err != nil {
			return err
		}
	}
	archive := zip.NewWriter(to)
	// The site leaves the sources, which are as they were.
	return errors.Join(os.Rename(filepath.Join(committed, "site"), filepath.Join(bag, "site")),
		os.RemoveAll(filepath.Join(committed, "bin")),
		os.WriteFile(filepath.Join(bag, "START.txt"), start, 0o644),
		archive.AddFS(os.DirFS(bag)), archive.Close())
}

// modules makes the folder to, a GOPROXY with all that the three modules of the sources need: a module cache keeps what
// it downloads in that form. It asks the cache of this computer first.
func (m *maker) modules(ctx context.Context, cache, to string) error {
	proxy, err := m.command(ctx, nil, "go", "env", "GOMODCACHE", "GOPROXY")
	if err != nil {
		return err
	}
	near, far, _ := strings.Cut(proxy, "\n")
	env := []string{"GOMODCACHE=" + cache, "GOFLAGS=-modcacherw", "GOPROXY=file://" + near + "/cache/download," + far}
	for _, module := range []string{".", "internal/check/compat", "internal/check/tools"} {
		fmt.Fprintln(m.out, "download the modules of", module)
		if _, err := m.command(ctx, env, "go", "-C", module, "mod", "download"); err != nil {
			return err
		}
	}
	return os.Rename(filepath.Join(cache, "cache", "download"), to)
}

// programs builds the programs for a target into dir, and adds our licence and those of all that is linked into them.
// No path and no state of the checkout is in them.
func (m *maker) programs(ctx context.Context, target, dir string) error {
	var licences strings.Builder
	for _, p := range programs {
		fmt.Fprintf(m.out, "build %s for %s\n", p.name, target)
		linked := "-ldflags=-s -w -X main.releaseName=" + m.version + p.linked
		// The go command names what it builds into a folder: viz, or viz.exe.
		if _, err := m.goFor(ctx, target, p, "build", "-trimpath", linked, "-o", dir+"/"); err != nil {
			return err
		}
		if err := m.licences(ctx, &licences, target, p); err != nil {
			return err
		}
	}
	return errors.Join(os.Link(filepath.Join(m.root, "LICENSE"), filepath.Join(dir, "LICENSE")),
		os.WriteFile(filepath.Join(dir, "THIRD-PARTY.txt"), []byte(licences.String()), 0o644))
}

var licenceName = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice)`)

// licences writes the licences and notices of all that a program is made of. A module without one is an error: it may
// not be handed out.
func (m *maker) licences(ctx context.Context, to io.Writer, target string, p program) error {
	list, err := m.goFor(ctx, target, p, "list", "-deps", "-f",
		"{{with .Module}}{{if not (or .Main .Replace)}}{{.Path}}@{{.Version}}\t{{.Dir}}{{end}}{{end}}")
	if err != nil {
		return err
	}
	goroot, err := m.command(ctx, nil, "go", "env", "GOROOT")
	if err != nil {
		return err
	}
	list += "\n" + runtime.Version() + "\t" + goroot
	fmt.Fprintf(to, "%s contains code of others, under these licences.\n\n", p.name)
	for _, line := range slices.Compact(slices.Sorted(strings.SplitSeq(list, "\n"))) {
		module, dir, theirs := strings.Cut(line, "\t")
		if !theirs {
			continue // ours, or the standard library
		}
		found := false
		entries, _ := os.ReadDir(dir) // what cannot be read has no licence
		for _, entry := range entries {
			if entry.Type().IsRegular() && licenceName.MatchString(entry.Name()) {
				licence, err := os.ReadFile(filepath.Join(dir, entry.Name()))
				if err != nil {
					return err
				}
				found = true
				fmt.Fprintf(to, "%s (%s)\n\n%s\n%s\n\n", module, entry.Name(), licence, strings.Repeat("=", 80))
			}
		}
		if !found {
			return fmt.Errorf("%s has no licence in %s", module, dir)
		}
	}
	return nil
}
