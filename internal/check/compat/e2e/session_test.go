//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/recording"
)

// moment is the page's state at its cursor.
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

// stands waits until fits returns true for the page's moment, and returns the moment.
func (p *page) stands(t *testing.T, what string, fits func(m moment) bool) (m moment) {
	t.Helper()
	program.Eventually(t, patience, func() (bool, string) {
		m = p.moment(t)
		return fits(m), fmt.Sprintf("%s: %+v", what, m)
	})
	return m
}

// hashOf returns a checksum of a value's JSON as eight hexadecimal digits. The order of keys does not matter.
func hashOf(t *testing.T, picture any) string {
	t.Helper()
	var tree any
	require.NoError(t, json.Unmarshal(require.Value(json.Marshal(picture))(t), &tree))
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE(require.Value(json.Marshal(tree))(t))) // Marshal sorts keys
}

// sameAsServer waits until the page is live and has the server's state.
func (p *page) sameAsServer(t *testing.T, v *viz) {
	t.Helper()
	program.Eventually(t, patience, func() (bool, string) {
		m := p.moment(t)
		var snapshot struct{ State json.RawMessage }
		v.Get(t, "/viz/snapshot", &snapshot)
		server := require.Value(fold.Read(snapshot.State))(t)
		return m.Mode == "live" && m.Seq == server.Seq && m.Hash == hashOf(t, server),
			fmt.Sprintf("the page %+v, the server at %d with %s", m, server.Seq, hashOf(t, server))
	})
}

// seek moves the page to a cursor.
func (p *page) seek(t *testing.T, cursor int) {
	t.Helper()
	p.run(t, `await listwatch.player.seek(%d)`, cursor)
}

// busy adds at least n records to the log.
func (v *viz) busy(t *testing.T, n uint64) {
	t.Helper()
	for begin, i := v.seq(t), 0; v.seq(t) < begin+n; i++ {
		v.createPod(t, fmt.Sprintf("busy-%d-%d", begin, i))
	}
}

// TestAStageThatIsFrozenOrSlowedDownReturnsToThePicture freezes the page, slows it down, and makes it live again. When
// slow, the page replays from its cursor on, and continues as records arrive. When live, it has the server's state.
func TestAStageThatIsFrozenOrSlowedDownReturnsToThePicture(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false", "-controllers=false")
	p := openPage(t, v.URL)
	v.busy(t, 20)
	p.sameAsServer(t, v)
	// After its first picture, the page requests the records before that picture.
	p.until(t, `listwatch.player.tape.get(listwatch.player.cursor) !== undefined`)
	p.click(t, "#freeze")
	frozen := p.moment(t)
	p.is(t, "true", "the sentence is the record's", `(({ player, stage }) =>
		$text("#sentence .words") === stage.says(player.tape.get(player.cursor)))(listwatch)`)
	v.busy(t, 500)
	m := p.stands(t, "frozen", func(m moment) bool { return m.Head >= m.Seq+500 })
	assert.True(t, m.Mode == "frozen" && m.Seq == frozen.Seq && m.Hash == frozen.Hash,
		"while frozen: got %+v, want it as at %+v", m, frozen)
	p.click(t, "#freeze")
	p.sameAsServer(t, v)

	p.run(t, setSpeed("-2"))
	slow := p.moment(t)
	v.busy(t, 300)
	p.stands(t, fmt.Sprintf("slowed down at %+v", slow), func(m moment) bool {
		return m.Mode == "replay" && m.Seq > slow.Seq && m.Seq < m.Head
	})
	p.strike(t, "End")
	p.sameAsServer(t, v)
	p.is(t, "1×", "live again at", `$("#speed-text").textContent`)
}

func TestAStoppedProcessIsSaidToBeStoppedAndGoesOnWithoutAGap(t *testing.T) {
	t.Parallel()
	v, p := still(t)
	require.NoError(t, v.Cmd.Process.Signal(syscall.SIGSTOP))
	// Otherwise the test could not end the stopped process.
	t.Cleanup(func() { _ = v.Cmd.Process.Signal(syscall.SIGCONT) })
	p.until(t, `$("#banner:not([hidden])")?.textContent.includes("The program says nothing")`)
	require.NoError(t, v.Cmd.Process.Signal(syscall.SIGCONT))
	v.busy(t, 50)
	p.sameAsServer(t, v)
	m := p.moment(t)
	assert.True(t, m.Banner == "" || strings.Contains(m.Banner, "was stopped for"), "the page still says %q", m.Banner)
	p.is(t, "0", "records lost", "listwatch.state.lost")
}

// TestAPageThatIsToldGoneListsAgainAndEndsEqual restarts the program that a page uses. The log with the page's next
// record no longer exists. The feed reports this in the same way as a record that has left the log.
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
	// Leave first, because the program ends before the page closes, and the page would log an error.
	p.do(t, chromedp.Navigate("about:blank"))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.complaints = nil // while the program was away, the page logged failed requests
}

// readRecording reads a file that -record or the flight recorder has written.
func readRecording(t *testing.T, file string) (recording.Header, []probe.Record) {
	t.Helper()
	rec := require.Value(recording.Open(t.Context(), file))(t)
	return rec.Header, rec.Records
}
