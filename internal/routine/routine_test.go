package routine

import (
	"context"
	"runtime/pprof"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWaitReturnsWhenEveryBodyHasEnded(t *testing.T) {
	var g Group
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan string, 2) // sent by the bodies, never closed; room for both
	body := func(ctx context.Context) {
		label, _ := pprof.Label(ctx, "routine")
		<-ctx.Done()
		ended <- label
	}
	g.Go(ctx, "test.one", body)
	g.Go(ctx, "test.two", body)
	cancel()
	g.Wait()
	if len(ended) != 2 {
		t.Fatalf("got %d bodies ended after Wait, want 2", len(ended))
	}
	names := map[string]bool{<-ended: true, <-ended: true}
	if !names["test.one"] || !names["test.two"] {
		t.Errorf("labels: got %v, want test.one and test.two", names)
	}
}
