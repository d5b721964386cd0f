//go:build full

package e2e

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"listwatch/internal/check/require"
)

// The README's film shows the page itself replaying a story's recording, ten pictures a second. The film is an animated
// PNG, which every browser shows.
const (
	filmPeriod  = 100 * time.Millisecond // the time between two pictures
	filmColours = 128                    // in the palette, one of them transparent
	filmWidth   = 900                    // a README's width on GitHub; the lanes' names then have 16 px or more
	filmHeight  = 432
)

// filmScenes are the film's scenes, in the order of the story's beats.
var filmScenes = []struct {
	caption string
	beat    int // plays up to the end of this beat of the story; 0: nothing moves
	ms      int // the approximate time until then
	rest    int // the pause at the end, in ms
}{
	{"Five clients watch pods, each through two channels", 0, 0, 1800},
	{"One of them, the laptop, stops reading", 1, 300, 1500},
	{"Pods change, and its result channel fills", 2, 3400, 900},
	{"Then its input channel fills, too", 3, 1800, 1000},
	{"The dispatcher waits for it, but 0.1 s at most", 4, 1800, 200},
	{"The laptop's watch is closed, and the others go on", 5, 2800, 1800},
}

// film writes one film to a file: a client stops reading, its channels fill, and the server closes its watch.
func (p *page) film(t *testing.T, v *viz, scheme, file string) {
	t.Helper()
	var story told
	v.Get(t, "/viz/scenario/"+filmStory, &story)
	beats := story.Recorded
	p.do(t, look{"film", filmWidth, filmHeight, scheme, "no-preference"}.wear(1),
		chromedp.Navigate(v.URL+"/?figure=1&detail=boxes&take=story-"+filmStory))
	p.until(t, "window.listwatch?.player.head >= %d", beats[len(beats)-1].To)
	p.run(t, `const { StoryView } = await import("/viz/assets/stage/storyview.js");
		const { player, stage } = listwatch;
		const story = await (await fetch("/viz/scenario/%s")).json();
		stage.scene.story = new StoryView(stage.scene, story, player.tape.between(%d, %d), 0);
		$("#detail").hidden = true;
		const [caption, said] = [document.createElement("h2"), $(".said")];
		said.after(caption);
		said.hidden = true;
		Object.assign(caption.style, { font: "600 24px/2.2 var(--sans, sans-serif)", textAlign: "center", margin: 0 });
		globalThis.$caption = caption;
		await player.seek(%d);
		stage.zoom.frameOn(["dispatch", "watcher"]);
		await film(1000);`, filmStory, beats[0].From+1, beats[len(beats)-1].To+1, beats[0].To-1)
	var frames []image.Image
	shoot := func(ms int) {
		for range time.Duration(ms) * time.Millisecond / filmPeriod {
			evaluate[bool](t, p, fmt.Sprintf(`film(%d)`, filmPeriod.Milliseconds()))
			frames = append(frames, p.see(t))
		}
	}
	// The last scene follows the story's last beat, and ends before the laptop comes back, or with the recording.
	beats = append(beats, beats[3])
	beats[4].To = evaluate[uint64](t, p, fmt.Sprintf(`(listwatch.player.tape.between(%d, listwatch.player.head)
		.find((r) => r.point === "WatcherAdded")?.seq ?? listwatch.player.head + 1) - 1`, beats[3].To+1))
	for _, scene := range filmScenes {
		p.run(t, `$caption.textContent = %q`, scene.caption)
		if scene.beat > 0 {
			p.run(t, `listwatch.player.playTo(%d, { within: %d })`, beats[scene.beat-1].To, scene.ms)
		}
		shoot(scene.ms)
		for late := 0; scene.beat > 0 && p.moment(t).Seq != beats[scene.beat-1].To; late++ {
			require.True(t, late < 30, "%q does not come to its end", scene.caption)
			shoot(int(filmPeriod.Milliseconds()))
		}
		shoot(scene.rest)
	}
	require.NoError(t, os.WriteFile(file, animate(t, frames), 0o644))
}

// animate returns the pictures as an animated PNG. The PNG holds the whole first picture. For each later picture it
// holds only the rectangle that has changed.
func animate(t *testing.T, frames []image.Image) []byte {
	t.Helper()
	palette, nearest := paletteOf(frames)
	size := frames[0].Bounds()
	shown := image.NewPaletted(size, palette)
	var out bytes.Buffer
	sequence := uint32(0)
	for i, frame := range frames {
		next, changed := image.NewPaletted(size, palette), image.Rectangle{}
		for y := size.Min.Y; y < size.Max.Y; y++ {
			for x := size.Min.X; x < size.Max.X; x++ {
				at := next.PixOffset(x, y)
				if next.Pix[at] = nearest(frame.At(x, y)); i == 0 || next.Pix[at] != shown.Pix[at] {
					changed = changed.Union(image.Rect(x, y, x+1, y+1))
				}
			}
		}
		if changed.Empty() {
			changed = image.Rect(0, 0, 1, 1)
		}
		part := image.NewPaletted(changed, palette) // transparent where nothing has changed
		for y := changed.Min.Y; y < changed.Max.Y; y++ {
			for x := changed.Min.X; x < changed.Max.X; x++ {
				if at := next.PixOffset(x, y); i == 0 || next.Pix[at] != shown.Pix[at] {
					part.SetColorIndex(x, y, next.Pix[at])
				}
			}
		}
		shown = next
		control := binary.BigEndian.AppendUint32(nil, sequence)
		for _, n := range []int{changed.Dx(), changed.Dy(), changed.Min.X, changed.Min.Y} {
			control = binary.BigEndian.AppendUint32(control, uint32(n))
		}
		control = binary.BigEndian.AppendUint16(control, uint16(filmPeriod.Milliseconds()))
		control = binary.BigEndian.AppendUint16(control, 1000)
		control = append(control, 0, 1) // keep the canvas after the frame; blend the frame over it
		sequence++
		for _, c := range chunksOf(t, part) {
			if c.kind == "IDAT" && control != nil {
				chunk{"fcTL", control}.write(&out)
				control = nil
			}
			switch {
			case c.kind == "IDAT" && i > 0:
				chunk{"fdAT", append(binary.BigEndian.AppendUint32(nil, sequence), c.data...)}.write(&out)
				sequence++
			case i == 0 && c.kind == "IHDR":
				out.WriteString("\x89PNG\r\n\x1a\n")
				c.write(&out)
				chunk{"acTL", binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(len(frames))),
					0)}.write(&out)
			case i == 0 && c.kind != "IEND":
				c.write(&out)
			}
		}
	}
	chunk{"IEND", nil}.write(&out)
	return out.Bytes()
}

// chunk is a part of a PNG file.
type chunk struct {
	kind string
	data []byte
}

func (c chunk) write(out *bytes.Buffer) {
	body := append([]byte(c.kind), c.data...)
	out.Write(binary.BigEndian.AppendUint32(nil, uint32(len(c.data))))
	out.Write(body)
	out.Write(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(body)))
}

// chunksOf returns the chunks of a picture encoded as PNG.
func chunksOf(t *testing.T, picture image.Image) (list []chunk) {
	t.Helper()
	var file bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&file, picture))
	for rest := file.Bytes()[8:]; len(rest) > 0; {
		n := binary.BigEndian.Uint32(rest)
		list = append(list, chunk{string(rest[4:8]), rest[8 : 8+n]})
		rest = rest[12+n:]
	}
	return list
}

// paletteOf returns a palette of a transparent colour and then the pictures' most frequent colours. The function that
// it returns maps a colour to the index of the nearest one in the palette.
func paletteOf(frames []image.Image) (color.Palette, func(color.Color) uint8) {
	counts := map[color.Color]int{}
	for _, frame := range frames {
		size := frame.Bounds()
		for y := size.Min.Y; y < size.Max.Y; y++ {
			for x := size.Min.X; x < size.Max.X; x++ {
				counts[frame.At(x, y)]++
			}
		}
	}
	all := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int { return cmp.Compare(counts[b], counts[a]) })
	palette := color.Palette{color.NRGBA{}}
	palette = append(palette, all[:min(len(all), filmColours-1)]...)
	known := map[color.Color]uint8{}
	return palette, func(c color.Color) uint8 {
		i, ok := known[c]
		if !ok {
			i = uint8(1 + palette[1:].Index(c))
			known[c] = i
		}
		return i
	}
}
