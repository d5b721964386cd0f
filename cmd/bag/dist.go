package main

import (
	"archive/zip"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// export writes the site into a folder: book, stories and stage as pages that need no program.
func (m *maker) export(ctx context.Context, dir string) error {
	_, err := goOutput(ctx, m.root, nil, "run", viz.pkg, "-export", dir)
	m.site = dir
	return err
}

// dist writes one archive for each target, and the checksums of all.
func (m *maker) dist(ctx context.Context, dir string) error {
	sums := ""
	for _, t := range m.targets {
		name := fmt.Sprintf("listwatch-%s-%s.zip", m.version, t)
		if err := m.release(ctx, t, filepath.Join(dir, name)); err != nil {
			return err
		}
		sum, err := checksum(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		sums += sum + "  " + name + "\n"
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(sums), 0o644)
}

// release writes what one target needs: the program, which brings page, book and recordings along, and the licences.
func (m *maker) release(ctx context.Context, t target, file string) (err error) {
	temp, err := os.MkdirTemp("", "listwatch-bag-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	binary := filepath.Join(temp, t.exe("viz"))
	if err := m.build(ctx, t, viz, binary); err != nil {
		return err
	}
	return m.zipPrograms(ctx, t, file, map[program]string{viz: binary}, m.site)
}

// zipPrograms writes an archive with binaries, our licence and those of all that is linked into them, and a site, if that is not "".
func (m *maker) zipPrograms(ctx context.Context, t target, file string, binaries map[program]string, site string) error {
	out, err := newArchive(file, zip.Deflate)
	if err != nil {
		return err
	}
	var notices []notice
	for _, p := range slices.SortedFunc(maps.Keys(binaries), func(a, b program) int { return cmp.Compare(a.name, b.name) }) {
		if err = out.addFile(t.exe(p.name), binaries[p], true); err != nil {
			return out.close(err)
		}
		more, err := m.notices(ctx, t, p)
		if err != nil {
			return out.close(err)
		}
		notices = append(notices, more...)
	}
	if err = out.addFile("LICENSE", filepath.Join(m.root, "LICENSE"), false); err == nil {
		err = out.addBytes("THIRD-PARTY.txt", thirdParty(notices))
	}
	if err == nil && site != "" {
		err = out.addTree("site", os.DirFS(site))
	}
	return out.close(err)
}

// notice is a licence, or a notice that must go with it, of a module that is linked into a binary.
type notice struct{ module, file, text string }

// notices returns the licences of all that a program is made of. A module without one is an error: it may not be handed out.
func (m *maker) notices(ctx context.Context, t target, p program) ([]notice, error) {
	list, err := m.goFor(ctx, t, p, "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}}\t{{.Dir}}{{end}}{{end}}")
	if err != nil {
		return nil, err
	}
	goRoot, err := goOutput(ctx, m.root, nil, "env", "GOVERSION", "GOROOT")
	if err != nil {
		return nil, err
	}
	lines := slices.Compact(slices.Sorted(strings.Lines(list + "\n")))
	lines = append(lines, strings.Replace(goRoot, "\n", "\t", 1))
	var all []notice
	for _, line := range lines {
		module, dir, found := strings.Cut(strings.TrimSpace(line), "\t")
		if !found {
			continue // ours, or the standard library
		}
		of, err := noticesIn(module, dir)
		if err != nil {
			return nil, err
		}
		if len(of) == 0 {
			return nil, fmt.Errorf("%s has no licence in %s", module, dir)
		}
		all = append(all, of...)
	}
	return all, nil
}

func noticesIn(module, dir string) ([]notice, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []notice
	for _, entry := range entries {
		name := strings.ToUpper(entry.Name())
		wanted := strings.HasPrefix(name, "LICENSE") || strings.HasPrefix(name, "LICENCE") || strings.HasPrefix(name, "COPYING") || strings.HasPrefix(name, "NOTICE")
		if !wanted || !entry.Type().IsRegular() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, notice{module, entry.Name(), string(text)})
	}
	return all, nil
}

// thirdParty is all of them as one text. Equal texts stand there once, below the modules that they are of.
func thirdParty(notices []notice) []byte {
	of := map[string][]string{}
	for _, each := range notices {
		text := strings.TrimSpace(strings.ReplaceAll(each.text, "\r\n", "\n"))
		of[text] = append(of[text], each.module+" ("+each.file+")")
	}
	var parts []string
	for text, modules := range of {
		slices.Sort(modules)
		parts = append(parts, strings.Join(slices.Compact(modules), "\n")+"\n\n"+text+"\n")
	}
	slices.Sort(parts)
	return []byte("The programs beside this file contain code of others, under these licences.\n\n" + strings.Join(parts, "\n"+strings.Repeat("=", 80)+"\n\n"))
}

func checksum(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	_, err = io.Copy(hash, file)
	return fmt.Sprintf("%x", hash.Sum(nil)), err
}
