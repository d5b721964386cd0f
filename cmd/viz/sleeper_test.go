package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

const bigPod = "/api/v1/namespaces/default/pods/big"

// TestASleeperThatIsInterruptedTakesItsPodAway interrupts it, as Ctrl-C does, when its clients are at work.
func TestASleeperThatIsInterruptedTakesItsPodAway(t *testing.T) {
	p := start(t, "-demo=false", "-flight=off")
	ctx, interrupt := context.WithCancel(t.Context())
	out, in := io.Pipe()
	status := make(chan int, 1)
	go func() { status <- run(ctx, []string{"-sleeper", p.url}, in, io.Discard) }()
	line, err := bufio.NewReader(out).ReadString('\n')
	require.True(t, err == nil && strings.Contains(line, "changes 100 times"), "it says %q, %v", line, err)
	for p.waits(t, bigPod) {
	}
	interrupt()
	assert.Equal(t, <-status, exitOK, "status")
	code, body := p.get(t, bigPod)
	assert.Equal(t, code, http.StatusNotFound, "the pod is left behind: %d %.200s", code, body)
	p.end(t)
}

// waits reports whether there is no such object yet.
func (p *program) waits(t *testing.T, path string) bool {
	t.Helper()
	code, _ := p.get(t, path)
	return code == http.StatusNotFound
}

// TestASleeperLeavesAPodOfItsNameAlone and says how to remove it.
func TestASleeperLeavesAPodOfItsNameAlone(t *testing.T) {
	p := start(t, "-demo=false", "-flight=off")
	pod := `{"metadata":{"name":"big"},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	code, body := p.send(t, http.MethodPost, "/api/v1/namespaces/default/pods", pod)
	require.Equal(t, code, http.StatusCreated, "%d %s", code, body)
	var stderr strings.Builder
	if status := run(t.Context(), []string{"-sleeper", p.url}, io.Discard, &stderr); status != exitError ||
		!strings.HasSuffix(stderr.String(), "kubectl -s "+p.url+" delete pod big\n") {
		t.Errorf("status %d, %q", status, &stderr)
	}
	code, _ = p.get(t, bigPod)
	assert.Equal(t, code, http.StatusOK, "the other's pod is gone")
	p.end(t)
}
