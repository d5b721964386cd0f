package probetest

import (
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

func TestAStoryHasABeginningAndAnEnd(t *testing.T) {
	log := probe.NewLog(clock.RealClock{}, 0)
	for rv := range uint64(100) {
		probe.New(log).Subject("w1").Event(probe.InputSent, "ADDED", "default/a", rv, 1, 10)
	}
	lines := strings.Split(strings.TrimSpace(tell(log)), "\n")
	require.Equal(t, len(lines), beginning+1+end, "got %d lines, want %d", len(lines), beginning+1+end)
	for i, want := range map[int]string{0: "ADDED default/a enters", beginning: "… 40 more …", beginning +
		end: "ADDED default/a at 99 enters"} {
		assert.True(t, strings.Contains(lines[i], want), "line %d: got %q, want %q in it", i, lines[i], want)
	}
}
