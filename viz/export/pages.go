package export

import (
	_ "embed"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"

	"listwatch/viz/stories"
)

//go:embed static.js
var staticScript []byte

const (
	assets = "/viz/assets/"

	// policy lets a page load files beside it, and forbids inline scripts and styles. It allows file: because some
	// browsers do not count files beside a page on disk as 'self'. No page from a web server can load file:.
	policy = "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' file:; " +
		"font-src data:; frame-src 'self' file:; connect-src 'self'; base-uri 'none'; form-action 'none'"
	// machines also lets the first page run WebAssembly, in a Worker that the page creates from a text.
	machines = "script-src 'self' file: 'wasm-unsafe-eval'; worker-src blob:;"
)

var (
	// address matches an attribute that leads to another page or file of the program. It matches no text, because texts
	// have escaped quotes.
	address = regexp.MustCompile(` (href|src|data-frame|data-whole)="(/[^"]*)"`)
	module  = regexp.MustCompile(`<script type="module"`)
	// face matches a font's URL in a style sheet. A data URL replaces it, since no page on disk can load a font.
	face = regexp.MustCompile(`url\("([\w-]+\.woff2)"\)`)
)

// fileOf returns the file for an address, relative to the root: "book/06-cacher.html" for "/book/06-cacher".
func fileOf(address string) string {
	switch {
	case strings.HasPrefix(address, assets):
		return "assets/" + strings.TrimPrefix(address, assets)
	case strings.HasSuffix(address, "/"):
		return address[1:] + "index.html"
	}
	return address[1:] + ".html"
}

// addPage adds the page at an address of the program, and the assets that it names, unless it is there already.
func (s *site) addPage(at string) {
	name := fileOf(at)
	if s.files[name] != nil {
		return
	}
	asked := at
	if at == "/" {
		asked = "/?take=" + stories.Tour // the stage with a recording
	}
	s.files[name] = []byte(s.complete(name, s.rewrite(name, string(s.get(asked)))))
}

// rewrite turns links in HTML into links to files, adds assets, queues pages, and drops links to the rest of /viz/.
func (s *site) rewrite(name, page string) string {
	up := strings.Repeat("../", strings.Count(name, "/"))
	return address.ReplaceAllStringFunc(page, func(found string) string {
		match := address.FindStringSubmatch(found)
		place, rest := match[2], ""
		if i := strings.IndexAny(place, "?#"); i >= 0 {
			place, rest = place[:i], place[i:]
		}
		switch {
		case strings.HasPrefix(place, assets):
			s.addAsset(place)
		case strings.HasPrefix(place, "/viz/"):
			return "" // only the program can answer
		default:
			s.ways = append(s.ways, place)
		}
		return fmt.Sprintf(` %s="%s%s"`, match[1], up+fileOf(place), rest)
	})
}

// complete adapts a page to files: it replaces modules by scripts, and adds the headers that the program would send,
// the script that answers in its place and, for some pages, a preview.
func (s *site) complete(name, page string) string {
	up := strings.Repeat("../", strings.Count(name, "/"))
	page = strings.Replace(module.ReplaceAllString(page, "<script defer"), "the live stage", "the stage, recorded", 1)
	const charset = `<meta charset="utf-8">`
	page = strings.Replace(page, charset,
		fmt.Sprintf(
			`%s<meta http-equiv="Content-Security-Policy" content="%s"><meta name="referrer" content="no-referrer">`+
				`<script defer src="%sstatic.js"></script>`, charset, policy, up), 1)
	if name == "index.html" {
		page = strings.Replace(page, "script-src 'self' file:;", machines, 1)
		page = strings.Replace(page, "</head>", preview("listwatch: Kubernetes' list-watch machinery, alive",
			"Follow one change from kubectl to a controller, read the book beside the stage, and see what has "+
				"happened to you told as a story."), 1)
	}
	for i := range s.offered {
		if story := &s.offered[i]; name == "book/stories/"+story.ID+".html" {
			page = strings.Replace(page, "</head>", preview(story.Search, story.Means), 1)
		}
	}
	return page
}

// preview ends a page's head with its description for link previews. `make site` completes the picture's address.
func preview(title, about string) string {
	return fmt.Sprintf(`<meta property="og:title" content="%s"><meta property="og:description" content="%s">`+
		`<meta property="og:type" content="website"><meta property="og:image" content="assets/preview.png">`+
		`<meta name="twitter:card" content="summary_large_image"></head>`, html.EscapeString(title),
		html.EscapeString(about))
}

// mark is the name of the file that marks a folder as an export. marked is the file's text.
const (
	mark   = "listwatch-export.txt"
	marked = "Written by listwatch -export, which replaces its files here when it is asked to again.\n"
)

// openOurs opens the folder of an export, and marks it. It refuses a folder that is not empty and has no mark, a link
// to a folder, and a folder with links in it, because their targets do not belong to the export.
func openOurs(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	there, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	if err := checkOurs(root, there); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// checkOurs checks and marks an open folder for openOurs. The argument there describes the folder, or the link to it.
func checkOurs(root *os.Root, there fs.FileInfo) error {
	opened, err := root.Stat(".")
	if err != nil {
		return err
	}
	if !os.SameFile(there, opened) {
		return fmt.Errorf("%s is a link: name the folder itself", root.Name())
	}
	empty := true
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		empty = empty && name == "."
		if err == nil && entry.Type()&fs.ModeSymlink != 0 {
			err = fmt.Errorf("%s in %s is a link: remove it", name, root.Name())
		}
		return err
	})
	if err != nil {
		return err
	}
	if text, _ := root.ReadFile(mark); !empty && string(text) != marked {
		return fmt.Errorf("%s is not empty, and not an export: choose another folder", root.Name())
	}
	return replace(root, mark, []byte(marked))
}

// replace writes a file of an export. It creates a new file, because the old one may have hard links elsewhere.
func replace(root *os.Root, name string, body []byte) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return root.WriteFile(name, body, 0o644)
}

// The forms in the page's modules: each import of names is one line, and each export is part of a declaration.
var (
	importing = regexp.MustCompile(`(?m)^import \{ ([^}\n]+) \} from "([^"\n]+)";$`)
	exporting = regexp.MustCompile(`(?m)^export ((?:async )?(?:function\*?|const|class) ([\w$]+))`)
	unknown   = regexp.MustCompile(`(?m)^(?:import|export)\b.*`)
)

// bundler combines modules into one classic script, because a browser loads no modules from disk. A library for this
// would be one more that each user of the program has to fetch and build.
type bundler struct {
	read func(path string) ([]byte, error)
	out  strings.Builder
	done map[string]bool // by path; false while a module's imports are being added
}

// bundle returns the module at a path, with all its imports, as a classic script.
func bundle(entry string, read func(path string) ([]byte, error)) (string, error) {
	b := &bundler{read: read, done: make(map[string]bool)}
	// A page that first starts the program in its tab sets listwatchReady (static.js).
	b.out.WriteString("(async () => {\n\"use strict\";\nawait globalThis.listwatchReady;\n" +
		"const listwatchModules = {};\n")
	if err := b.add(entry); err != nil {
		return "", err
	}
	b.out.WriteString("})();\n")
	return b.out.String(), nil
}

// add appends a module after its imports. Each module has its own scope, and runs to its end before the next begins.
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
