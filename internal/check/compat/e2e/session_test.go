//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/recording"
)

// moment is what the page says about when it is.
type moment struct {
	Mode   string
	Seq    uint64
	Head   uint64
	Hash   string
	Banner string
}

func (p *page) moment(t *testing.T) moment {
	t.Helper()
	at := evaluate[struct {
		moment
		State string
	}](t, p, `!window.listwatch ? { Mode: "loading", State: "{}" } : ({
		Mode: document.body.dataset.mode, Seq: listwatch.state.seq, Head: listwatch.player.head,
		Banner: $("#banner").hidden ? "" : $("#banner").textContent, State: JSON.stringify(listwatch.state),
	})`)
	at.Hash = hashOf(t, json.RawMessage(at.State))
	return at.moment
}

// hashOf returns eight digits, equal for pictures, or their JSON, that are equal but for the order of keys.
func hashOf(t *testing.T, picture any) string {
	t.Helper()
	var tree any
	require.NoError(t, json.Unmarshal(require.Value(json.Marshal(picture))(t), &tree))
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE(require.Value(json.Marshal(tree))(t))) // maps are written in order
}

// sameAsServer waits until the page is live and shows the picture that the server has.
func (p *page) sameAsServer(t *testing.T, v *viz) {
	t.Helper()
	program.Eventually(t, patience, func() (bool, string) {
		m := p.moment(t)
		var snapshot struct{ State json.RawMessage }
		v.Get(t, "/viz/snapshot", &snapshot)
		server, err := fold.Read(snapshot.State)
		require.NoError(t, err)
		return m.Mode == "live" && m.Seq == server.Seq && m.Hash == hashOf(t, server),
			fmt.Sprintf("the page %+v, the server at %d with %s", m, server.Seq, hashOf(t, server))
	})
}

// seek takes the page to a cursor and returns the hash of what it then shows.
func (p *page) seek(t *testing.T, cursor int) string {
	t.Helper()
	p.run(t, `await listwatch.player.seek(%d)`, cursor)
	at := p.moment(t)
	return fmt.Sprint(at.Seq, " ", at.Hash)
}

// busy makes the log longer by n records at least.
func (v *viz) busy(t *testing.T, n uint64) {
	t.Helper()
	for begin, i := v.seq(t), 0; v.seq(t) < begin+n; i++ {
		v.createPod(t, fmt.Sprintf("busy-%d-%d", begin, i))
	}
}

func TestAFrozenStageStaysAndReturnsToThePicture(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false", "-controllers=false")
	p := openPage(t, v.URL)
	v.busy(t, 20)
	p.sameAsServer(t, v)
	// what led to its first picture it asks for afterwards
	p.until(t, `listwatch.player.tape.get(listwatch.player.cursor) !== undefined`)
	p.click(t, "#freeze")
	frozen := p.moment(t)
	p.is(t, "true", "the sentence is the record's", `(({ player, stage }) =>
		$text("#sentence .words") === stage.says(player.tape.get(player.cursor)))(listwatch)`)
	v.busy(t, 500)
	var m moment
	program.Eventually(t, patience, func() (bool, string) {
		m = p.moment(t)
		return m.Head >= m.Seq+500, fmt.Sprintf("%+v", m)
	})
	assert.True(t, m.Mode == "frozen" && m.Seq == frozen.Seq && m.Hash == frozen.Hash,
		"while frozen: got %+v, want it as at %+v", m, frozen)
	p.click(t, "#freeze")
	p.sameAsServer(t, v)
}

func TestAStoppedProcessIsSaidToBeStoppedAndGoesOnWithoutAGap(t *testing.T) {
	t.Parallel()
	v, p := still(t)
	require.NoError(t, v.Cmd.Process.Signal(syscall.SIGSTOP))
	// whatever happens: a stopped process ends no other way
	t.Cleanup(func() { _ = v.Cmd.Process.Signal(syscall.SIGCONT) })
	p.until(t, `$("#banner:not([hidden])")?.textContent.includes("The program says nothing")`)
	require.NoError(t, v.Cmd.Process.Signal(syscall.SIGCONT))
	v.busy(t, 50)
	p.sameAsServer(t, v)
	if m := p.moment(t); m.Banner != "" && !strings.Contains(m.Banner, "was stopped for") {
		t.Errorf("the page still says %q", m.Banner)
	}
	p.is(t, "0", "records lost", "listwatch.state.lost")
}

func TestARecordingShowsTheSamePicturesWhereverItIsReplayed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.lw.gz")
	v := startViz(t, "-demo=false", "-record", file)
	v.busy(t, 1500)
	v.Interrupt(t)
	v.ExitCode(t, program.HangsAfter)
	_, records := readRecording(t, file)
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	compare := func(t *testing.T, p *page) {
		random := rand.New(rand.NewPCG(7, 8))
		for range 20 {
			cursor := random.IntN(len(records))
			state := fold.New()
			state.Apply(records[:cursor])
			if got, want := p.seek(t, cursor), fmt.Sprint(state.Seq, " ", hashOf(t, state)); got != want {
				t.Fatalf("at %d: the page shows %s, want %s", cursor, got, want)
			}
		}
		link := evaluate[string](t, p, `($("#link").click(), location.hash)`)
		assert.True(t, strings.Contains(link, "recording="+recording.Hash(written)),
			"link: got %s, want the recording's hash %s in it", link, recording.Hash(written))
	}
	t.Run("by the program", func(t *testing.T) {
		p := openPage(t, startViz(t, "-replay", file).URL)
		// It plays by itself, from the beginning; it may have come to its end already.
		p.until(t, `document.body.dataset.mode === "replay" && window.listwatch?.player.moved &&
			listwatch.player.cursor > 10 && listwatch.player.head === %d`, len(records))
		compare(t, p)
	})
	t.Run("in the page", func(t *testing.T) {
		other := startViz(t, "-demo=false", "-controllers=false")
		p := openPage(t, other.URL)
		p.live(t, other)
		p.drop(t, "run.lw.gz", written)
		program.Eventually(t, patience, func() (bool, string) {
			m := p.moment(t)
			return m.Mode == "replay" && m.Head == uint64(len(records)), fmt.Sprintf("%+v", m)
		})
		compare(t, p)
	})
}

func TestALinkThatDoesNotFitSaysSo(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false", "-controllers=false")
	p := openPage(t, "about:blank")
	for link, want := range map[string]string{
		"#log=OTHER&at=7":                  "another run of the program",
		"#recording=0123456789abcdef&at=7": "drop its file onto the page",
	} {
		p.do(t, chromedp.Navigate("about:blank"))
		p.navigate(t, v.URL+"/"+link)
		p.until(t, `$("#banner:not([hidden])")?.textContent.includes(%q)`, want)
	}
}

func TestWhatGoesWrongIsSavedByItself(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	v := startViz(t, "-controllers=false", "-demo=false", "-ring-capacity=10", "-flight", dir)
	v.busy(t, 2000)
	client := &http.Client{Timeout: 5 * time.Second}
	response, err := client.Get(v.URL + "/api/v1/pods?watch=true&resourceVersion=2")
	require.NoError(t, err)
	answer, err := io.ReadAll(response.Body) // who leaves before the end may never have been told
	response.Body.Close()
	require.True(t, err == nil && strings.Contains(string(answer), "too old resource version"),
		"got %s, %v", answer, err)
	var files []string
	program.Eventually(t, patience, func() (bool, string) {
		files, _ = filepath.Glob(filepath.Join(dir, "*"))
		return len(files) == 1 && strings.Contains(v.Stderr.String(), files[0]), fmt.Sprint(files, "\n",
			v.Stderr.String())
	})
	header, records := readRecording(t, files[0])
	assert.True(t, len(records) >= 1000 && header.Reason != "",
		"got %d records for the reason %q", len(records), header.Reason)
}

// TestAPageThatIsToldGoneListsAgainAndEndsEqual restarts the program under the page: the log whose next record the page
// asks for is no more, which the feed says in the same word as when it has run over a page.
func TestAPageThatIsToldGoneListsAgainAndEndsEqual(t *testing.T) {
	t.Parallel()
	first := startViz(t, "-demo=false", "-controllers=false")
	p := openPage(t, first.URL)
	first.busy(t, 100)
	p.sameAsServer(t, first)
	first.Interrupt(t)
	first.ExitCode(t, program.HangsAfter)
	second := startViz(t, "-demo=false", "-controllers=false", "-listen", strings.TrimPrefix(first.URL, "http://"))
	second.busy(t, 200)
	p.sameAsServer(t, second)
	// What ends last here was started first: second is gone before the browser is, and the page would complain of it.
	p.do(t, chromedp.Navigate("about:blank"))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.complaints = nil // that no program answered for a while is the point
}

// readRecording is what -record or the flight recorder left in the file.
func readRecording(t *testing.T, file string) (recording.Header, []probe.Record) {
	t.Helper()
	rec, err := recording.Open(t.Context(), file)
	require.NoError(t, err)
	return rec.Header, rec.Records
}
