package book

import (
	"strings"
	"testing"

	"listwatch/chapters"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

// ofTheProgram are the points that no chapter reports: they tell of the program around the machinery, and have no page.
var ofTheProgram = map[probe.Point]bool{
	probe.KnobTurned: true, probe.CommandEnded: true, probe.EtcdLookedAt: true, probe.EtcdFailed: true,
	probe.ProgramStopped: true, probe.WatcherSummed: true,
}

func TestEveryPointIsALineOfADeclaration(t *testing.T) {
	sites, err := Sites(chapters.FS())
	require.NoError(t, err)
	for _, point := range probe.Points() {
		site := sites[point.String()]
		if ofTheProgram[point] {
			if site != nil {
				t.Errorf("%s: a chapter reports it, in %s", point, site.Symbol)
			}
			continue
		}
		if site == nil {
			t.Errorf("%s: no declaration reports it", point)
			continue
		}
		line := site.LineOf(point.String())
		if line < site.From || line >= site.From+len(site.Lines) {
			t.Errorf("%s: line %d is not within %s, [%d, %d)", point, line, site.Symbol, site.From, site.From+
				len(site.Lines))
			continue
		}
		if text := site.Lines[line-site.From]; !strings.Contains(text, point.String()) {
			t.Errorf("%s: line %d of %s is %q", point, line, site.File, text)
		}
		assert.True(t, site.Line >= site.From && site.Line <= line,
			"%s: %s is declared at %d, reported at %d", point, site.Symbol, site.Line, line)
	}
}
