package loops

import (
	"encoding/xml"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
	"listwatch/internal/play/scenario"
)

const maxLoop = 300_000 // bytes

var site = flag.String("site", "", "an export whose stories get their pictures: ID.svg, a loop, and ID.png, its end")

// TestAStoryIsALoop makes the pictures of one story or, with -site, those of all stories in that export.
func TestAStoryIsALoop(t *testing.T) {
	dir, stories := *site, scenario.All
	if dir == "" {
		dir, stories = t.TempDir(), []scenario.Story{*scenario.Find("slow-watcher")}
		cmd, _ := program.VizCommand(t, "-export", dir)
		require.NoError(t, cmd.Run())
	}
	// No sandbox is needed, because the browser opens our own files only.
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.DisableGPU, chromedp.NoSandbox)
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	defer stop()
	ctx, end := chromedp.NewContext(allocator)
	defer end()
	require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(1200, 630)))
	fonts := string(require.Value(os.ReadFile(filepath.Join(dir, "assets/fonts/fonts.css")))(t))
	face := fonts[strings.Index(fonts, "@font-face") : strings.Index(fonts, "}")+1]
	for i := range stories {
		story := &stories[i]
		name := filepath.Join(dir, "book", "stories", story.ID)
		shows := func(address string) { require.NoError(t, chromedp.Do(ctx, chromedp.Navigate("file://"+address))) }
		shows(fmt.Sprintf("%s/index.html?story=%s&beat=%d&embed", dir, story.ID, story.Climax()+1))
		script := program.FilmClock + sampler
		play := require.Value(chromedp.Run(ctx, chromedp.Evaluate[Play](script, chromedp.EvalAwaitPromise)))(t)
		play.Style += face
		loop := SVG(story.Title, &play)
		play.Frames = play.Frames[len(play.Frames)-1:]
		require.NoError(t, os.WriteFile(name+".svg", []byte(SVG(story.Title, &play)), 0o644))
		shows(name + ".svg")
		shot := require.Value(chromedp.Run(ctx, chromedp.CaptureScreenshot()))(t)
		require.NoError(t, os.WriteFile(name+".png", shot, 0o644))
		require.NoError(t, os.WriteFile(name+".svg", []byte(loop), 0o644))
		require.NoError(t, xml.Unmarshal([]byte(loop), new(struct{})), "%s", story.ID)
		moves := strings.Contains(loop, "@keyframes")
		assert.True(t, moves && len(loop) <= maxLoop, "%s: %d bytes, moves: %t", story.ID, len(loop), moves)
		picture := `<img class="story" src="` + story.ID + `.svg" alt="six seconds of the key moment">`
		text := string(require.Value(os.ReadFile(name + ".html"))(t))
		text = strings.Replace(text, "<!-- loop -->", picture, 1)
		text = strings.Replace(text, "assets/preview.png", "book/stories/"+story.ID+".png", 1)
		require.NoError(t, os.WriteFile(name+".html", []byte(text), 0o644))
	}
}
