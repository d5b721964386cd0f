package export

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"

	"listwatch/viz/stories"
)

//go:embed static.js
var staticScript []byte

const (
	assets = "/viz/assets/"

	// policy lets a page load what lies beside it, and run no script and no style that is written into it. For a page
	// in a folder not every browser takes its neighbours for 'self'; one from a web server can load no file.
	policy = "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' file:; " +
		"frame-src 'self' file:; connect-src 'self'; base-uri 'none'; form-action 'none'"
	// machines is what the first page may do, too: run WebAssembly, in a Worker that it makes from a text.
	machines = "script-src 'self' file: 'wasm-unsafe-eval'; worker-src blob:;"
)

var (
	// address is an attribute that leads to another page or file of the program. Quotes in texts are escaped.
	address = regexp.MustCompile(` (href|src|data-frame|data-whole)="(/[^"]*)"`)
	// editor is a link that opens a file of the machine the program was built on.
	editor = regexp.MustCompile(`<a class="button" href="vscode:[^"]*">[^<]*</a>`)
	module = regexp.MustCompile(`<script type="module"`)
)

// fileOf returns the file, from the root, in which what is at an address of the program is written:
// "book/06-cacher.html" for "/book/06-cacher".
func fileOf(address string) string {
	switch {
	case strings.HasPrefix(address, assets):
		return "assets/" + strings.TrimPrefix(address, assets)
	case strings.HasSuffix(address, "/"):
		return address[1:] + "index.html"
	}
	return address[1:] + ".html"
}

// addPage adds the page at an address of the program.
func (s *site) addPage(at string) {
	name := fileOf(at)
	if s.files[name] != nil {
		return
	}
	asked := at
	if at == "/" {
		asked = "/?take=" + stories.Tour // a stage that shows a recording
	}
	s.write(name, string(s.get(asked)))
}

// write adds a page under the name of its file.
func (s *site) write(name, page string) {
	s.files[name] = []byte(s.complete(name, s.rewrite(name, page)))
}

// rewrite makes the links of a piece of HTML in a file lead to files, and notes what they lead to.
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
			return "" // it leads to the program
		default:
			s.ways = append(s.ways, place)
		}
		return fmt.Sprintf(` %s="%s%s"`, match[1], up+fileOf(place), rest)
	})
}

// complete puts into a page what the program says in headers, and the script that stands in for it.
func (s *site) complete(name, page string) string {
	up := strings.Repeat("../", strings.Count(name, "/"))
	page = strings.Replace(module.ReplaceAllString(page, "<script defer"), "the live stage", "the stage, recorded", 1)
	const charset = `<meta charset="utf-8">`
	page = strings.Replace(page, charset,
		fmt.Sprintf(
			`%s<meta http-equiv="Content-Security-Policy" content="%s"><meta name="referrer" content="no-referrer">`+
				`<script defer src="%sstatic.js"></script>`,
			charset, policy, up), 1)
	if name == "index.html" {
		page = strings.Replace(page, "script-src 'self' file:;", machines, 1)
		page = strings.Replace(page, "</head>", preview+"</head>", 1)
	}
	return page
}

// preview is what is shown of a link to the pages. Where a picture has to have its whole address, `make site` puts that
// in.
const preview = `<meta property="og:title" content="listwatch: Kubernetes' list-watch machinery, alive">` +
	`<meta property="og:description" content="Follow one change from kubectl to a controller, ` +
	`read the book beside the stage, and see what has happened to you told as a story.">` +
	`<meta property="og:type" content="website"><meta property="og:image" content="assets/preview.png">` +
	`<meta name="twitter:card" content="summary_large_image">`
