// Package chapterdrawing makes the book's pictures from test runs. A test runs the chapter's code, draws the run, and
// compares the drawing with the SVG file next to the README: each number in a picture comes from a run. With -update
// the test writes the file.
package chapterdrawing

import (
	"bytes"
	"flag"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

var update = flag.Bool("update", false, "write the drawings")

// style is for code hosts, which show the file as it is. The book has its own style for the same classes.
const style = `  <style>
    svg { --paper: #fdfdfb; --ink: #1d2023; --soft: #585f67; --queue: #b57c00; --kept: #2f8fc8; --good: #007a5a;
      --warn: #b34a00 }
    @media (prefers-color-scheme: dark) { svg { --paper: #15181b; --ink: #dee1e3; --soft: #9aa3ab;
      --queue: #f0b429; --kept: #56b4e9; --good: #58cfa8; --warn: #f09a60 } }
    text { font: 15px Inter, system-ui, sans-serif; fill: var(--ink) }
    .mono { font-family: "JetBrains Mono", ui-monospace, monospace } .soft { fill: var(--soft) }
      .mid { text-anchor: middle } .end { text-anchor: end } .bold { font-weight: 650 }
    .ground { fill: var(--paper) } .wall { fill: none; stroke: var(--soft); stroke-width: 1.4 }
    [data-kind="queue"] { --kind: var(--queue) } [data-kind="kept"] { --kind: var(--kept) }
      [data-kind="acts"] { --kind: var(--good) }
    [data-kind] .wall { stroke: var(--kind); stroke-width: 1.8 } .fill { fill: var(--kind, var(--soft)) }
      .full { fill: var(--warn) } .cross { fill: none; stroke: var(--warn); stroke-width: 2.5 }
    .way { fill: none; stroke: var(--soft); stroke-width: 1.5 } .later { stroke-dasharray: 5 4 }
      .tip { fill: var(--soft) }
  </style>
`

// Drawing is a picture 640 units wide. On a laptop, the book shows its letters at 12 px or more. Coordinates grow to
// the right and down. A parameter class takes one or more of the classes in style.
type Drawing struct {
	file   string
	height int
	body   strings.Builder
}

// New returns an empty drawing for a file such as "ring.svg".
func New(file string, height int) *Drawing { return &Drawing{file: file, height: height} }

// Text writes text on the base line y. The text begins at x, or has its middle or end at x if class has mid or end.
func (d *Drawing) Text(x, y int, class, text string, args ...any) {
	fmt.Fprintf(&d.body, "  <text x=\"%d\" y=\"%d\" class=\"%s\">%s</text>\n",
		x, y, class, html.EscapeString(fmt.Sprintf(text, args...)))
}

// Box draws a rectangle with rounded corners. Its top left corner is at (x, y).
func (d *Drawing) Box(x, y, width, height int, class string) {
	fmt.Fprintf(&d.body, "  <rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"3\"/>\n",
		class, x, y, width, height)
}

// Path draws a path in SVG's path syntax, such as "M10 20H30". path is a format for args.
func (d *Drawing) Path(class, path string, args ...any) {
	fmt.Fprintf(&d.body, "  <path class=\"%s\" d=\"%s\"/>\n", class, fmt.Sprintf(path, args...))
}

// Arrow draws a path with a tip at its end.
func (d *Drawing) Arrow(class, path string, args ...any) {
	fmt.Fprintf(&d.body, "  <path class=\"%s\" d=\"%s\" marker-end=\"url(#%s)\"/>\n",
		class, fmt.Sprintf(path, args...), d.tip())
}

// In calls draw, and gives its shapes the colour of a kind: "queue" where events wait, "kept" for stored state, "acts"
// for active parts. Parts drawn outside In, such as a held lock, are grey. The class "full" marks an eviction.
func (d *Drawing) In(kind string, draw func()) {
	fmt.Fprintf(&d.body, "  <g data-kind=\"%s\">\n", kind)
	draw()
	d.body.WriteString("  </g>\n")
}

// Pose draws the picture for one value of a quantity. All poses of the quantity share a place. The file shows the pose
// for first; in the book, a slider chooses the pose.
func (d *Drawing) Pose(quantity string, value, first int, draw func()) {
	hidden := map[bool]string{true: "", false: ` display="none"`}[value == first]
	fmt.Fprintf(&d.body, "  <g data-quantity=\"%s\" data-value=\"%d\"%s>\n", quantity, value, hidden)
	draw()
	d.body.WriteString("  </g>\n")
}

func (d *Drawing) tip() string { return strings.TrimSuffix(filepath.Base(d.file), ".svg") + "-tip" }

func (d *Drawing) svg() []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 %d\">\n%s", d.height, style)
	fmt.Fprintf(&out, "  <rect class=\"ground\" width=\"640\" height=\"%d\"/>\n  <defs><marker id=\"%s\""+
		" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\"><path "+
		"class=\"tip\""+
		" d=\"M0 0L8 4L0 8z\"/></marker></defs>\n", d.height, d.tip())
	out.WriteString(d.body.String() + "</svg>\n")
	return out.Bytes()
}

// Check fails the test if the file in the test's folder differs from this drawing, and reports the command that updates
// the file. With -update, Check first writes the file.
func (d *Drawing) Check(t testing.TB) {
	t.Helper()
	svg := d.svg()
	if *update {
		require.NoError(t, os.WriteFile(d.file, svg, 0o644))
	}
	onDisk := require.Value(os.ReadFile(d.file))(t)
	diff := cmp.Diff(strings.Split(string(onDisk), "\n"), strings.Split(string(svg), "\n"))
	folder := filepath.Base(require.Value(os.Getwd())(t))
	test, _, _ := strings.Cut(t.Name(), "/")
	assert.True(t, diff == "", "%s shows what no longer happens: if what is seen now is right, run\n"+
		"go test ./chapters/%s -run %s -update\n(-drawn +seen):\n%s", d.file, folder, test, diff)
}
