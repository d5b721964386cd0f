package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/recordingbombs"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

const (
	greatest = 1<<53 - 1 // JavaScript's Number.MAX_SAFE_INTEGER
	header   = `{"format":"listwatch recording","version":1}`
)

// hostile is a recording that an attacker or a broken disk may have written.
type hostile struct {
	name    string
	text    string // the uncompressed recording
	refusal string // part of the page's refusal; "" if the page must show the recording
}

// everyPoint returns a recording with two records of every point, filled with arg and text, and a last record.
func everyPoint(arg, firstSeq, lastTime int64, text string) string {
	lines := []string{header}
	line := func(fields map[string]any) {
		written, err := json.Marshal(fields)
		if err != nil {
			panic(err)
		}
		lines = append(lines, string(written))
	}
	seq := firstSeq
	for _, point := range probe.Points() {
		texts := map[string]string{}
		for _, name := range point.Info().Texts.List() {
			texts[name] = text
		}
		for _, key := range []string{"default/a", text} {
			line(map[string]any{
				"seq": seq, "t": seq - firstSeq, "point": point.Info().Name, "resource": "pods", "subject": "w1",
				"type": "ADDED",
				"key":  key, "rv": "18446744073709551615", "args": []int64{arg, arg, arg, arg},
				"texts": texts,
			})
			seq++
		}
	}
	line(map[string]any{"seq": seq, "t": lastTime, "point": "RingAppend", "resource": "pods", "key": "default/a",
		"rv": "7", "args": []int64{0, 1, 100, 1}})
	return strings.Join(lines, "\n")
}

func hostiles() []hostile {
	picture := func(written, record string) string {
		return `{"format":"listwatch recording","version":1,"keyframe":` + written + "}\n" + record
	}
	good := `{"seq":1,"t":1,"point":"RingAppend","args":[0,1,100,1]}`
	return []hostile{
		{"every arg negative", everyPoint(-5, 1, 1_000_000, "x"), ""},
		{"every arg the smallest", everyPoint(-greatest, 1, 1_000_000, "x"), ""},
		{"every arg the greatest", everyPoint(greatest, 1, 1_000_000, "x"), ""},
		{"a time without end", everyPoint(1, 1, greatest, "x"), ""},
		{"late numbers", everyPoint(1, greatest-100_000, 1_000_000, "x"), ""},
		{"markup", everyPoint(1, 1, 1_000_000, `"><img src=x onerror="hostile=1"><script>hostile=1</script>__proto__`),
			""},
		{"long texts", everyPoint(1, 1, 1_000_000, strings.Repeat("long ", 4000)), ""},
		{"an absurd picture", picture(
			`{"resources":{"pods":{"ring":{"start":0,"end":9007199254740991,"capacity":9007199254740991,"cells":[]},`+
				`"subjects":{"w1":{"kind":"watcher","opened":1,"queues":{"input":{"len":9007199254740991,`+
				`"cap":9007199254740991,"tokens":[]}}}}}}}`, good), ""},
		{"no records", header, "empty"}, // viz/script_test.go tests other refusals
		{"deep", header + "\n" + strings.Repeat("[", 200_000), "is not a record"},
	}
}

// TestAHostileRecordingIsShownOrRefused drops hostile recordings one after the other onto one page. The page must show
// each recording or refuse it with a sentence. The page must run no script from a recording, and must still draw. An
// exception fails the test, too (page.verify).
func TestAHostileRecordingIsShownOrRefused(t *testing.T) {
	t.Parallel()
	_, p := still(t)
	for _, each := range hostiles() {
		last := strings.Count(each.text, "\n")
		p.drop(t, each.name, zipped(t, each.text))
		began := time.Now()
		p.stands(t, fmt.Sprintf("%s, %d records", each.name, last), func(m moment) bool {
			said := strings.Contains(m.Banner, each.name) && strings.Contains(m.Banner, each.refusal)
			shown := m.Mode == "replay" && evaluate[int](t, p,
				`listwatch.player.head - listwatch.player.oldest`) == last && !strings.Contains(m.Banner, each.name)
			return each.refusal != "" && said || each.refusal == "" && shown
		})
		if each.refusal != "" {
			continue
		}
		for i := range 5 {
			p.run(t, `const { player } = window.listwatch;
				await player.seek(player.oldest + Math.floor((player.head - player.oldest) * %d / 4));
				await new Promise(requestAnimationFrame);`, i)
		}
		p.press(t, "v")
		evaluate[bool](t, p,
			`new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => drawn(true))))`)
		p.press(t, "v")
		assert.False(t, evaluate[bool](t, p, `"hostile" in window || "x" in Object.prototype`),
			"%s: its script ran", each.name)
		t.Logf("%s: %d records shown in %v", each.name, last, time.Since(began).Round(time.Millisecond))
	}
}

// TestTheTabTakesWhatTheProgramRecordsAndNoMore drops every third recording that needs too much memory, or all with
// FULL. The page must refuse them, but must replay one that the program made with the maximum number of watchers.
func TestTheTabTakesWhatTheProgramRecordsAndNoMore(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "log.lw.gz")
	v := startViz(t, "-record", file)
	for code := http.StatusCreated; code == http.StatusCreated; {
		answer, err := http.Post(v.URL+"/viz/watchers", "application/json", strings.NewReader(`{"resource":"pods"}`))
		require.NoError(t, err)
		answer.Body.Close()
		code = answer.StatusCode
	}
	v.Interrupt(t)
	v.ExitCode(t, program.HangsAfter)
	v = startViz(t, "-demo=false", "-controllers=false")
	p := openPage(t, v.URL)
	p.live(t, v)
	for i, greedy := range append(slices.Clone(recordingbombs.All), recordingbombs.LongTexts) {
		if i%3 > 0 && !full {
			continue
		}
		p.drop(t, greedy.Name, greedy.File())
		p.stands(t, greedy.Name, func(m moment) bool {
			return strings.Contains(m.Banner, greedy.Name+": ") && strings.Contains(m.Banner, greedy.Refusal)
		})
	}
	_, records := readRecording(t, file)
	written := require.Value(os.ReadFile(file))(t)
	p.drop(t, "at the limits", written)
	p.replays(t, records)
}

// zipped compresses a text with gzip, the format of recording files.
func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var file bytes.Buffer
	w := gzip.NewWriter(&file)
	require.Value(w.Write([]byte(text)))(t)
	require.NoError(t, w.Close())
	return file.Bytes()
}

// drop drops a file onto the page.
func (p *page) drop(t *testing.T, name string, file []byte) {
	t.Helper()
	p.run(t, `const files = new DataTransfer();
		files.items.add(new File([Uint8Array.from(atob(%q), (c) => c.charCodeAt(0))], %q));
		document.dispatchEvent(new DragEvent("drop",
			{ dataTransfer: files, bubbles: true, cancelable: true }));`, base64.StdEncoding.EncodeToString(file), name)
}
