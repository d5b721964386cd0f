package book

import (
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// drawing replaces an image by what its SVG file draws. On a forge the file is shown with its own style, in light or
// dark. In the book it is part of the page, has the page's colours, and its parts are parts of the stage.
func (d *document) drawing(image *ast.Image) {
	file := string(image.Destination)
	if path.Ext(file) != ".svg" {
		d.problem(image, "an image: draw it as an SVG file, or in a code fence")
		return
	}
	svg, err := fs.ReadFile(d.editor.fsys, path.Join(d.chapter.Folder, file))
	if err == nil {
		err = harmless(string(svg))
	}
	if err != nil {
		d.problem(image, "%s: %w", file, err)
		return
	}
	image.Parent().ReplaceChild(image.Parent(), image, ready(
		`<span class="drawn" role="img" tabindex="0" aria-label="%s">%s</span>`,
		html.EscapeString(d.text(image)), withoutStyle.ReplaceAllString(string(svg), "")))
}

// withoutStyle is what only a forge needs: the style, and a ground to be seen on.
var withoutStyle = regexp.MustCompile(`(?s)<style>.*?</style>\s*|<rect class="ground"[^>]*/>\s*`)

// harmless returns an error for an SVG that is more than a drawing: the page's Content-Security-Policy would refuse it.
func harmless(svg string) error {
	decoder := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch start.Name.Local {
		case "svg", "style", "defs", "marker", "g", "rect", "path", "circle", "ellipse", "text", "tspan":
		default:
			return fmt.Errorf("a drawing has no element %s", start.Name.Local)
		}
		for _, attribute := range start.Attr {
			if name := attribute.Name.Local; name == "style" || name == "href" || strings.HasPrefix(name, "on") {
				return fmt.Errorf("a drawing has no attribute %s", name)
			}
		}
	}
}
