package e2e

import (
	"bytes"
	"context"
	"flag"
	"image"
	"image/png"
	"listwatch/internal/check/require"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// full asks for everything, and not for a sample of what only repeats: `make full` sets it.
var full = os.Getenv("FULL") != ""

var (
	screenshots = flag.String("screenshots", "", "write the pictures of all key moments into this folder")
	opening     = flag.String("opening", "", "write the README's pictures and films, stage- and film-light.png and "+
		"-dark.png, into this folder")
)

// look is one way to see a moment.
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

// wear makes the browser one of a viewer who likes it that way.
func (l look) wear(scale float64) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		size := emulation.SetDeviceMetricsOverrideParams{Width: l.width, Height: l.height, DeviceScaleFactor: scale}
		if _, err := cdp.Call(ctx, target, emulation.SetDeviceMetricsOverride, size); err != nil {
			return chromedp.Void{}, err
		}
		features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: l.scheme},
			{Name: "prefers-reduced-motion", Value: l.motion}}
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: features})
		return chromedp.Void{}, err
	}
}

// rest returns when nothing is on its way into its place any more: no transition runs, and the scene has been drawn
// since.
func (p *page) rest(t *testing.T) {
	t.Helper()
	p.run(t, `const frame = () => new Promise(requestAnimationFrame);
		await frame();
		await Promise.all(document.getAnimations().map((each) => each.finished.catch(() => {})));
		do await frame(); while (listwatch.stage.scene.stale);
		await frame();`)
}

// see returns what is to be seen.
func (p *page) see(t *testing.T) image.Image {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 30*time.Second)
	defer cancel()
	shot, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	require.NoError(t, err)
	picture, err := png.Decode(bytes.NewReader(shot))
	require.NoError(t, err)
	return picture
}

// shoot writes what is to be seen.
func (p *page) shoot(t *testing.T, file string) {
	t.Helper()
	// what the page said while it was on its way here
	p.run(t, `$("#notice").textContent = ""`)
	var small bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, p.see(t)))
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, small.Bytes(), 0o644))
}
