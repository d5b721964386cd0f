package e2e

import (
	"bytes"
	"context"
	"flag"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"listwatch/internal/check/require"
)

// full makes tests cover everything instead of a sample. `make full` sets it.
var full = os.Getenv("FULL") != ""

var (
	screenshots = flag.String("screenshots", "", "write the pictures of all key moments into this folder")
	opening     = flag.String("opening", "", "write the README's pictures and films, stage- and film-light.png and "+
		"-dark.png, into this folder")
)

// look is a window size and a viewer's preferences.
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

// wear makes the browser show the page in this look.
func (l look) wear(scale float64) chromedp.Action[chromedp.Void] {
	size := emulation.SetDeviceMetricsOverrideParams{Width: l.width, Height: l.height, DeviceScaleFactor: scale}
	likes := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: l.scheme}, {Name: "prefers-reduced-motion", Value: l.motion}}}
	return chromedp.Steps(tells(emulation.SetDeviceMetricsOverride, size), tells(emulation.SetEmulatedMedia, likes))
}

// rest returns when the page is at rest: it loads no font, runs no transition, and has drawn the scene since.
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

// shoot writes a screenshot to a file.
func (p *page) shoot(t *testing.T, file string) {
	t.Helper()
	// Clears messages from the way here.
	p.run(t, `$("#notice").textContent = ""`)
	var small bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, p.see(t)))
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, small.Bytes(), 0o644))
}
