package main

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"
)

// pack writes the bag.
func (m *maker) pack(ctx context.Context, file string) (err error) {
	temp, err := os.MkdirTemp("", "listwatch-bag-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	if err := m.export(ctx, filepath.Join(temp, "site")); err != nil {
		return err
	}
	releases := filepath.Join(temp, "releases")
	if err := m.dist(ctx, releases); err != nil {
		return err
	}
	for _, t := range m.targets {
		if err := m.packTools(ctx, t, temp); err != nil {
			return err
		}
	}
	if err := m.packSources(ctx, filepath.Join(temp, sourcesName)); err != nil {
		return err
	}
	bag, err := newArchive(file, zip.Store)
	if err != nil {
		return err
	}
	defer func() { err = bag.close(err) }()
	if err := m.addPages(bag); err != nil {
		return err
	}
	if err := bag.addTree(".", os.DirFS(temp)); err != nil {
		return err
	}
	return m.addModules(ctx, bag)
}

const (
	sourcesName = "listwatch-sources.zip"
	startName   = "START.html"
	modulesName = "modules"
)

// packTools builds what the workshop uses beside the program.
func (m *maker) packTools(ctx context.Context, t target, temp string) error {
	built := map[program]string{}
	for _, p := range tools {
		built[p] = filepath.Join(temp, t.exe(p.name))
		if err := m.build(ctx, t, p, built[p]); err != nil {
			return err
		}
	}
	err := m.zipPrograms(ctx, t, filepath.Join(temp, "tools", "tools-"+t.String()+".zip"), built, "")
	for _, binary := range built {
		err = errors.Join(err, os.Remove(binary))
	}
	return err
}

func (m *maker) packSources(ctx context.Context, file string) error {
	names, err := sources(ctx, m.root)
	if err != nil {
		return err
	}
	out, err := newArchive(file, zip.Deflate)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err = out.addFile("listwatch/"+name, filepath.Join(m.root, filepath.FromSlash(name)), name == ".ci/run"); err != nil {
			break
		}
	}
	return out.close(err)
}

// addModules adds the modules of all go.mod files in the form of a module proxy, and no other that lies in the cache here.
func (m *maker) addModules(ctx context.Context, bag *archive) error {
	cache, err := goOutput(ctx, m.root, nil, "env", "GOMODCACHE")
	if err != nil {
		return err
	}
	download := filepath.Join(cache, "cache", "download")
	added := map[string]bool{}
	modules, err := m.modules(ctx)
	if err != nil {
		return err
	}
	for _, dir := range modules {
		names, err := m.moduleFiles(ctx, dir)
		if err != nil {
			return err
		}
		for _, name := range names {
			if added[name] {
				continue
			}
			added[name] = true
			err := bag.addFile(path.Join(modulesName, name), filepath.Join(download, filepath.FromSlash(name)), false)
			if err != nil && !(errors.Is(err, fs.ErrNotExist) && strings.HasSuffix(name, ".mod")) {
				return err // a go.mod that the go command did not read here is one that it never reads: the graph is pruned there
			}
		}
	}
	fmt.Fprintf(m.out, "packed %d files of modules\n", len(added))
	return nil
}

// modules returns the folders of the modules that the sources are.
func (m *maker) modules(ctx context.Context) (dirs []string, err error) {
	names, err := sources(ctx, m.root)
	for _, name := range names {
		if path.Base(name) == "go.mod" {
			dirs = append(dirs, path.Dir(name))
		}
	}
	return dirs, err
}

// moduleFiles returns the files of a proxy that the module in a folder needs: go.mod of every module in its graph, and the contents of
// those that it lists.
func (m *maker) moduleFiles(ctx context.Context, dir string) (names []string, err error) {
	in := filepath.Join(m.root, filepath.FromSlash(dir))
	graph, err := goOutput(ctx, in, nil, "mod", "graph")
	if err != nil {
		return nil, err
	}
	for node := range strings.FieldsSeq(graph) {
		module, version, found := strings.Cut(node, "@")
		if found && module != "go" && module != "toolchain" {
			names = append(names, proxyName(module, version)+".mod")
		}
	}
	list, err := goOutput(ctx, in, nil, "mod", "download", "-json")
	if err != nil {
		return nil, err
	}
	for decoder := json.NewDecoder(strings.NewReader(list)); ; {
		var module struct{ Path, Version, Zip string }
		if err := decoder.Decode(&module); err == io.EOF {
			return names, nil
		} else if err != nil {
			return nil, err
		}
		if module.Zip == "" {
			continue // replaced by a folder of ours
		}
		name := proxyName(module.Path, module.Version)
		names = append(names, name+".mod", name+".info", name+".zip")
	}
}

// proxyName is where a proxy has a version of a module, without the ending. Capital letters are spelled !x: some file systems
// know no difference.
func proxyName(module, version string) string {
	escape := func(text string) string {
		var out strings.Builder
		for _, r := range text {
			if unicode.IsUpper(r) {
				out.WriteByte('!')
			}
			out.WriteRune(unicode.ToLower(r))
		}
		return out.String()
	}
	return escape(module) + "/@v/" + escape(version)
}
