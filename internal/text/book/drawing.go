package book

import (
	"fmt"
	"html"
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
	svg, err := fs.ReadFile(d.editor.fsys, strings.TrimPrefix(path.Join(path.Dir(d.name), file), "chapters/"))
	drawn := withoutStyle.ReplaceAllString(string(svg), "")
	if more := beyondDrawing.FindString(drawn); err == nil && more != "" {
		err = fmt.Errorf("a drawing has no %q", more)
	}
	if err != nil {
		d.problem(image, "%s: %w", file, err)
		return
	}
	image.Parent().ReplaceChild(image.Parent(), image, ready(
		`<span class="drawn" role="img" tabindex="0" aria-label="%s">%s</span>`,
		html.EscapeString(d.text(image)), drawn))
}

// withoutStyle is what only a forge needs: the style, and a ground to be seen on.
var withoutStyle = regexp.MustCompile(`(?s)<style>.*?</style>\s*|<rect class="ground"[^>]*/>\s*`)

// beyondDrawing is what the page's Content-Security-Policy would refuse.
var beyondDrawing = regexp.MustCompile(`(?i)<(script|style|image|a|use|foreignObject)\b|\s(style|href|on\w+)=`)
