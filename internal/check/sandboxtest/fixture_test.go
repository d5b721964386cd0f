package sandboxtest

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAServerThatIsStartedAgainIsReadyWhenEtcdHasAnswered(t *testing.T) {
	Run(t, 1<<16, func(t *testing.T, w *Fixture) {
		first := w.Pipeline.Server
		for _, line := range []string{"server stop", "etcd slow 1s", "server start"} {
			require.NoError(t, w.Do(t.Context(), strings.Fields(line)...))
		}
		assert.True(t, w.Pipeline.Server != first && w.Pipeline.Server.Ready() != nil,
			"it is ready before etcd has answered")
		began := time.Now()
		err := w.Pipeline.Server.WaitReady(context.WithoutCancel(t.Context()))
		assert.True(t, err == nil && time.Since(began) >= time.Second, "ready after %v: %v", time.Since(began), err)
	})
}
