package e2e

import (
	"context"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"golang.org/x/image/font/gofont/gomonobold"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// TestTheMachinesFontsDoNotMatter shows a chapter and a moment in a second browser, on a machine whose only font is a
// bold typewriter's. Each text must have the same place as in the first browser, and the picture the same pixels,
// except for rounding. A browser without any font does not start.
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

	const places = `document.fonts.ready.then(() => $$("header *, article *").map((el) => {
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
		seen[i] = p.see(t)
	}
	require.Equal(t, len(texts[0]), len(texts[1]))
	for i, text := range texts[0] {
		require.Equal(t, text, texts[1][i])
	}
	assert.True(t, len(texts[0]) > 200 && alike(seen[0], seen[1]), "%d texts; the stage is another picture",
		len(texts[0]))
}

// alike reports whether two pictures have the same pixels. Two browsers may round a channel in different ways.
func alike(one, other image.Image) bool {
	const level = 0x101 // one of 255, of 65,535
	near := func(a, b uint32) bool { return max(a, b)-min(a, b) <= level }
	for y := range one.Bounds().Dy() {
		for x := range one.Bounds().Dx() {
			r, g, b, _ := one.At(x, y).RGBA()
			r2, g2, b2, _ := other.At(x, y).RGBA()
			if !near(r, r2) || !near(g, g2) || !near(b, b2) {
				return false
			}
		}
	}
	return one.Bounds() == other.Bounds()
}
