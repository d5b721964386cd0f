package export

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// What the page's modules are written in: one import a line, of names; and names that are exported where they are
// declared.
var (
	importing = regexp.MustCompile(`(?m)^import \{ ([^}\n]+) \} from "([^"\n]+)";$`)
	exporting = regexp.MustCompile(`(?m)^export ((?:async )?(?:function\*?|const|class) ([\w$]+))`)
	unknown   = regexp.MustCompile(`(?m)^(?:import|export)\b.*`)
)

// bundler makes one classic script of modules: a browser loads none from a folder. That is done here in forty lines and
// not by a library, which each user of the program would have to fetch and build.
type bundler struct {
	read func(path string) ([]byte, error)
	out  strings.Builder
	done map[string]bool // by path; false: those that it imports are being added
}

// bundle returns the module at a path, with those that it imports, as a classic script.
func bundle(entry string, read func(path string) ([]byte, error)) (string, error) {
	b := &bundler{read: read, done: make(map[string]bool)}
	// A page that is not complete yet says so (static.js).
	b.out.WriteString("(async () => {\n\"use strict\";\nawait globalThis.listwatchReady;\n" +
		"const listwatchModules = {};\n")
	if err := b.add(entry); err != nil {
		return "", err
	}
	b.out.WriteString("})();\n")
	return b.out.String(), nil
}

// add appends a module after those that it imports. Its names are its own, and it is run to its end before the next one
// begins.
func (b *bundler) add(module string) error {
	if done, seen := b.done[module]; seen {
		if !done {
			return fmt.Errorf("bundle %s: it imports itself by way of others", module)
		}
		return nil
	}
	b.done[module] = false
	file, err := b.read(module)
	if err != nil {
		return err
	}
	src := string(file)
	for _, each := range importing.FindAllStringSubmatch(src, -1) {
		if err := b.add(path.Join(path.Dir(module), each[2])); err != nil {
			return fmt.Errorf("%s: %w", module, err)
		}
	}
	src = importing.ReplaceAllStringFunc(src, func(line string) string {
		each := importing.FindStringSubmatch(line)
		return fmt.Sprintf("const { %s } = listwatchModules[%q];", strings.ReplaceAll(each[1], " as ", ": "),
			path.Join(path.Dir(module), each[2]))
	})
	var names []string
	for _, each := range exporting.FindAllStringSubmatch(src, -1) {
		names = append(names, each[2])
	}
	src = exporting.ReplaceAllString(src, "$1")
	if line := unknown.FindString(src); line != "" {
		return fmt.Errorf("bundle %s: not in the form that can be bundled: %s", module, line)
	}
	fmt.Fprintf(&b.out, "listwatchModules[%q] = await (async () => {\n%s\nreturn { %s };\n})();\n", module, src,
		strings.Join(names, ", "))
	b.done[module] = true
	return nil
}
