package sandboxtest

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAServerThatIsStartedAgainIsReadyWhenEtcdHasAnswered(t *testing.T) {
	Run(t, 1<<16, func(t *testing.T, w *World) {
		first := w.Pipeline.Server
		w.StopServer()
		w.SlowEtcd(time.Second)
		if err := w.StartServer(); err != nil {
			t.Fatal(err)
		}
		if w.Pipeline.Server == first || w.Pipeline.Server.Ready() == nil {
			t.Error("it is ready before etcd has answered")
		}
		began := time.Now()
		if err := w.Pipeline.Server.WaitReady(context.WithoutCancel(t.Context())); err != nil ||
			time.Since(began) < time.Second {
			t.Errorf("ready after %v: %v", time.Since(began), err)
		}
	})
}
