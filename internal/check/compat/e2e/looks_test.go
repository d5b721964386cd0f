package e2e

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"golang.org/x/image/font/gofont/gomonobold"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// full makes tests cover everything instead of a sample. `make full` sets FULL.
var full = os.Getenv("FULL") != ""

var (
	screenshots = flag.String("screenshots", "", "write the pictures of all key moments into this folder")
	opening     = flag.String("opening", "", "write the README's pictures and films, stage- and film-light.png and "+
		"-dark.png, into this folder")
)

// look is a window size with a viewer's colour scheme and preference for motion.
type look struct {
	name          string
	width, height int64
	scheme        string
	motion        string
}

var looks = []look{
	{"light", 1280, 720, "light", "no-preference"},
	{"dark", 1280, 720, "dark", "no-preference"},
	{"reduced", 1280, 720, "light", "reduce"},
}

// wear makes the browser show the page in this look, with scale device pixels per CSS pixel.
func (l look) wear(scale float64) chromedp.Action[chromedp.Void] {
	size := emulation.SetDeviceMetricsOverrideParams{Width: l.width, Height: l.height, DeviceScaleFactor: scale}
	likes := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: l.scheme}, {Name: "prefers-reduced-motion", Value: l.motion}}}
	return chromedp.Steps(tells(emulation.SetDeviceMetricsOverride, size), tells(emulation.SetEmulatedMedia, likes))
}

// rest waits until the page has loaded its fonts, has finished its transitions, and has then drawn the scene.
func (p *page) rest(t *testing.T) {
	t.Helper()
	p.run(t, `const frame = () => new Promise(requestAnimationFrame);
		await frame();
		await document.fonts.ready;
		await Promise.all(document.getAnimations().map((each) => each.finished.catch(() => {})));
		do await frame(); while (listwatch.stage.scene.stale);
		await frame();`)
}

// see returns a screenshot.
func (p *page) see(t *testing.T) image.Image {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 30*time.Second)
	defer cancel()
	shot := require.Value(chromedp.Run(ctx, chromedp.CaptureScreenshot()))(t)
	picture := require.Value(png.Decode(bytes.NewReader(shot)))(t)
	return picture
}

// shoot clears the notice that earlier steps may have left, and writes a screenshot to a file.
func (p *page) shoot(t *testing.T, file string) {
	t.Helper()
	p.run(t, `$("#notice").textContent = ""`)
	var small bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, p.see(t)))
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, small.Bytes(), 0o644))
}

// TestTheMachinesFontsDoNotMatter shows a chapter and a moment in a second browser, whose only system font is a bold
// monospaced one. Each text must have the same place and size as in the first browser, and the stage the same pixels. A
// browser without any font does not start.
func TestTheMachinesFontsDoNotMatter(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false", "-controllers=false")
	fonts := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(fonts, "only.ttf"), gomonobold.TTF, 0o600))
	settings := filepath.Join(fonts, "fonts.conf")
	require.NoError(t, os.WriteFile(settings, fmt.Appendf(nil, `<?xml version="1.0"?>
		<!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig><dir>%[1]s</dir><cachedir>%[1]s</cachedir></fontconfig>`,
		fonts), 0o600))
	allocator, stop := chromedp.NewExecAllocator(context.Background(),
		append(browserOptions(), chromedp.Env("FONTCONFIG_FILE="+settings))...)
	t.Cleanup(stop)
	poor, end := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		assert.NoError(t, chromedp.Cancel(poor))
		end()
	})
	require.NoError(t, chromedp.Do(poor))
	rich := require.Value(chromium())(t)

	const places = `document.fonts.ready.then(() => $$("header *, article *, svg text").map((el) => {
		const { x, y, width, height } = el.getBoundingClientRect();
		return [el.tagName, el.textContent.slice(0, 30), x, y, width, height].join(" ");
	}))`
	var texts [2][]string
	var seen [2]image.Image
	for i, browser := range []context.Context{rich, poor} {
		p := openPageOf(t, browser, "about:blank")
		p.do(t, look{"", 1024, 800, "light", "reduce"}.wear(1), chromedp.Navigate(v.URL+"/book/10-deltafifo"))
		texts[i] = evaluate[[]string](t, p, places)
		p.do(t, chromedp.Navigate(v.URL+"/?take=ring"))
		p.until(t, `document.body.dataset.mode === "replay" && window.listwatch?.player.head > 200`)
		p.run(t, `await listwatch.player.seek(150)`)
		p.rest(t)
		p.run(t, `for (const how of ["transform", "transform", ""]) { // painted in parts, the page has other roundings
			document.body.style.willChange = how;
			await new Promise(requestAnimationFrame); }`)
		texts[i] = append(texts[i], evaluate[[]string](t, p, places)...)
		seen[i] = p.see(t)
	}
	assert.True(t, len(texts[0]) > 300, "%d texts", len(texts[0]))
	assert.EqualSlices(t, texts[0], texts[1], "places of texts")
	assert.Equal(t, seen[0].Bounds(), seen[1].Bounds(), "the size of the picture")
	assert.Equal(t, image.Rectangle{}, difference(seen[0], seen[1]), "where the stage is another picture")
}

// difference returns the rectangle in which two pictures of one size have different pixels. A channel may differ by one
// level, because browsers round.
func difference(one, other image.Image) (found image.Rectangle) {
	const level = 0x101 // one of 255 levels on RGBA's scale, up to 65,535
	near := func(a, b uint32) bool { return max(a, b)-min(a, b) <= level }
	for y := range one.Bounds().Dy() {
		for x := range one.Bounds().Dx() {
			r, g, b, _ := one.At(x, y).RGBA()
			r2, g2, b2, _ := other.At(x, y).RGBA()
			if !near(r, r2) || !near(g, g2) || !near(b, b2) {
				found = found.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	return found
}
