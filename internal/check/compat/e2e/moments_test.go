//go:build full

package e2e

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/takes"
)

// keyMoment is a moment of a recording at which the tests look at the picture.
type keyMoment struct {
	name, take, point string
	nth               int    // index among the records of point; negative: from the end
	then              string // JavaScript to run in the page at the moment
}

// keyMoments lists the moments that TestEveryKeyMomentIsShown checks.
var keyMoments = []keyMoment{
	{"01-in-motion", "busy", "ResultSent", -2, ""},
	{"02-request", "life", "RequestReceived", 0, ""},
	{"03-commit", "life", "TxnCommitted", 0, ""},
	{"04-etcd3", "life", "Etcd3IncomingSent", 1, ""},
	{"05-ring", "busy", "RingAppend", -1, ""},
	{"06-ring-overrun", "ring", "RingAppend", -1, ""},
	{"07-dispatch", "busy", "DispatchStarted", -2, ""},
	{"08-budget", "slow", "DispatchBlocked", 0, ""},
	{"09-evicted", "slow", "WatcherForced", 0, ""},
	{"10-followed", "life", "HandlerCalled", 2, `listwatch.follow.set("default/a")`},
	{"11-presenter", "busy", "InputSent", -1,
		`$("#presenter").click(); $("[data-station=watcher]").focus()`},
	{"12-start", "start", "ReflectorSynced", -1, ""},
}

// seq returns the number of the moment's record.
func (m keyMoment) seq(t *testing.T) uint64 {
	t.Helper()
	take, ok := takes.Find(m.take)
	require.True(t, ok, "there is no take %s", m.take)
	_, records, err := take.Load()
	require.NoError(t, err)
	var seqs []uint64
	for i := range records {
		if records[i].Point.String() == m.point && (records[i].Resource == "pods" || records[i].Resource == "") {
			seqs = append(seqs, records[i].Seq)
		}
	}
	i := m.nth
	if i < 0 {
		i += len(seqs)
	}
	require.True(t, i >= 0 && i < len(seqs), "%s: %d records of %s in %s", m.name, len(seqs), m.point, m.take)
	return seqs[i]
}

// TestEveryKeyMomentIsShown goes to each key moment and checks the sentence, the texts for overlaps, and a hash of the
// picture. -screenshots writes a picture of each moment in every look; -opening writes the README's pictures and films.
func TestEveryKeyMomentIsShown(t *testing.T) {
	t.Parallel()
	v := startViz(t, "-demo=false", "-controllers=false")
	p := openPage(t, "about:blank")
	which := looks[:1]
	if *screenshots != "" {
		which = looks
	}
	drawn := ""
	for i, l := range which {
		for _, m := range keyMoments {
			p.stand(t, v, m)
			if i == 0 {
				p.rest(t)
				drawn += fmt.Sprintln(m.name, p.hash(t))
			}
			p.collides(t, m.name)
			p.do(t, l.wear(1))
			p.judge(t, m)
			if *screenshots != "" {
				p.rest(t)
				p.shoot(t, filepath.Join(*screenshots, fmt.Sprintf("%s-%s.png", m.name, l.name)))
			}
		}
	}
	const sums = "moments.sum"
	if *updateSums {
		require.NoError(t, os.WriteFile(sums, []byte(drawn), 0o644))
	}
	assert.Equal(t, string(require.Value(os.ReadFile(sums))(t)), drawn, "%s is stale: look at the page, then in "+
		"internal/check/compat run go test -tags full ./e2e -run TestEveryKeyMomentIsShown -update-sums", sums)
	if *opening == "" {
		return
	}
	for _, l := range looks[:2] {
		p.do(t, l.wear(1))
		p.stand(t, v, keyMoments[0])
		p.hurry(t, keyMoments[0])
		p.shoot(t, filepath.Join(*opening, "stage-"+l.name+".png"))
	}
	p.do(t, before(program.FilmClock))
	for _, l := range looks[:2] {
		p.film(t, v, l.scheme, filepath.Join(*opening, "film-"+l.name+".png"))
	}
	require.NoError(t, os.WriteFile(filepath.Join(*opening, picturesSum), []byte(sumOfPictures(t)), 0o644))
}

var updateSums = flag.Bool("update-sums", false, "write moments.sum, the hashes of what is drawn at key moments")

// hash returns a hash of the picture's data without texts, coordinates, transparency, pace and delay.
func (p *page) hash(t *testing.T) string {
	t.Helper()
	picture := evaluate[string](t, p, `JSON.stringify(window.listwatch.picture({ texts: false }),
		(name, value) => (["x", "y", "alpha", "pace", "behind"].includes(name) ? undefined : value))`)
	return fmt.Sprintf("%.6x", sha256.Sum256([]byte(picture)))
}

// stand opens the recording of a moment, goes to the moment, and runs the moment's script.
func (p *page) stand(t *testing.T, v *viz, m keyMoment) {
	t.Helper()
	seq := m.seq(t)
	p.do(t, chromedp.Navigate(v.URL+"/?take="+m.take))
	p.stands(t, m.name, func(shown moment) bool { return shown.Mode == "replay" && shown.Head >= seq })
	p.run(t, `$("#banner button").click();
		await window.listwatch.player.seek(%d);
		%s;`, seq, m.then)
	p.stands(t, fmt.Sprint(m.name, " at ", seq), func(shown moment) bool { return shown.Seq == seq })
}

// hurry plays up to a moment, so that the tokens of earlier records are still moving.
func (p *page) hurry(t *testing.T, m keyMoment) {
	t.Helper()
	p.run(t, `const { player } = window.listwatch;
		const target = %d;
		await player.seek(target - 30);
		player.playTo(target + 30);
		do await new Promise(requestAnimationFrame);
			while (player.mode === "playing" && (player.cursor < target || listwatch.picture().moving.length === 0));
		player.freeze();`, m.seq(t))
}

// judge checks that the page has a sentence for the moment.
func (p *page) judge(t *testing.T, m keyMoment) {
	t.Helper()
	said := evaluate[string](t, p, `$("#sentence .words").textContent`)
	assert.True(t, said != "", "%s: nothing is said", m.name)
}
