package hold

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/worldclock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a running world with one worker that reports once a second of the world's time.
type fixture struct {
	*World
	clock, patience *worldclock.Clock
	log             *probe.Log
	said            []string
	end             func() // ends the world, and then the worker
}

func start(t *testing.T) *fixture {
	f := &fixture{clock: worldclock.New(time.Now()), patience: worldclock.New(time.Now())}
	f.log = probe.NewLog(f.clock, 0)
	f.log.Names().Set("pods", "w1", "laptop/2 /api/v1/pods")
	f.World = New(Config{Gate: f.log.Gate(), Clock: f.clock, Patience: f.patience,
		Say: func(line string) { f.said = append(f.said, line) }})
	bubble.Go(t, "world", f.clock.Run)
	bubble.Go(t, "patience", f.patience.Run)
	endHold, endWork := bubble.Go(t, "hold", f.Run), bubble.Go(t, "worker", f.work)
	f.end = func() { endHold(); endWork() }
	synctest.Wait() // the worker waits for its first tick
	return f
}

func (f *fixture) work(ctx context.Context) {
	p := probe.New(f.log).Resource("pods").Subject("w1")
	ticker := f.clock.NewTicker(time.Second)
	defer ticker.Stop()
	for rv := uint64(1); ; rv++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			p.Event(probe.InputReceived, "ADDED", "/registry/pods/default/a", rv, 0, 10)
		}
	}
}

func TestAHeldWorldLosesNoTime(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := start(t)
		time.Sleep(2500 * time.Millisecond)
		leave := f.Attend()
		defer leave()
		f.Hold(0)
		now := f.clock.Now()
		time.Sleep(time.Hour)
		assert.True(t, f.clock.Now().Equal(now) && f.log.Last() == 2,
			"after an hour the clock is %v on, with %d records", f.clock.Since(now), f.log.Last())
		if s := f.Status(); !s.Held || s.Usual() || !s.Clock.Paused || len(s.Waiting) != 0 ||
			time.Since(s.Since) != time.Hour {
			t.Errorf("status: %+v", s)
		}
		f.Release()
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		assert.True(t, f.log.Last() == 3,
			"half a second later: %d records, want the third, which was half a second away", f.log.Last())
		s := f.Status()
		assert.True(t, s.Usual(), "status: %+v", s)
	})
}

func TestTheClockCanRunWhileGoroutinesAreHeld(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := start(t)
		before := f.Changes()
		f.Hold(0)
		assert.True(t, f.Changes() != before, "a hold changes nothing")
		f.SetPaused(false)
		time.Sleep(5500 * time.Millisecond)
		synctest.Wait()
		s := f.Status()
		require.True(t, f.log.Last() == 1 && len(s.Waiting) == 1 && !s.Clock.Paused,
			"%d records, want the worker held at its first: %+v", f.log.Last(), s)
		got := s.Waiting[0]
		assert.True(t, got.Point == probe.InputReceived && got.Station == probe.Watcher && got.Subject == "w1" &&
			got.Key == "default/a" && got.RV == 1 && got.Seconds == 4.5 && got.Seq == 1 &&
			got.Goroutine == "cacheWatcher.processInterval" && got.Function == "hold.(*fixture).work" &&
			strings.HasPrefix(got.Line, "hold_test.go:") &&
			got.Says == "laptop takes ADDED default/a at 1 from its input.", "waiting: %+v", got)
		n := f.Step(probe.Query{Key: "default/b"})
		assert.Equal(t, 0, n, "%d passed with an object that does not exist", n)
		n = f.Step(probe.Query{Key: "default/a"})
		assert.Equal(t, 1, n, "%d passed, want 1", n)
		synctest.Wait()
		assert.True(t, f.log.Last() == 2, "after the hop %d records, want 2: a slow receiver misses ticks",
			f.log.Last())
		f.SetPaused(true)
		assert.True(t, f.Status().Clock.Paused, "the clock of the held world does not stop")
		f.Release()
		assert.False(t, f.Status().Clock.Paused, "released, the clock stands: it had only been stopped by the hold")
	})
}

func TestAClockThatWasStoppedBeforeStaysSo(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := start(t)
		f.SetPaused(true)
		f.Hold(0)
		f.Release()
		assert.True(t, f.Status().Clock.Paused, "released, the clock runs")
		f.Advance(3 * time.Second)
		synctest.Wait()
		assert.True(t, f.log.Last() == 3, "three seconds moved by hand gave %d records", f.log.Last())
		due := f.Status().Clock.Next[0]
		f.Advance(due.In)
		synctest.Wait()
		assert.True(t, f.log.Last() == 4, "the next timer gave %d records, want 4", f.log.Last())
	})
}

func TestPatienceNeverStandsAndNeverLags(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := start(t)
		require.NoError(t, f.SetSpeed(0.001))
		assert.True(t, f.SetSpeed(11) != nil, "speed 11 is accepted")
		f.Hold(0)
		began := f.patience.Now()
		time.Sleep(3 * time.Second)
		got := f.patience.Since(began)
		assert.Equal(t, 3*time.Second, got, "beside a held world the patience is %v on after 3s", got)
		f.Advance(10 * time.Second)
		got = f.patience.Since(began)
		assert.True(t, got >= 13*time.Second && got <= 14*time.Second, "moved by ten seconds it is %v on, want 13s",
			got)
		_ = f.SetSpeed(10)
		began = f.patience.Now()
		time.Sleep(time.Second)
		got = f.patience.Since(began)
		assert.Equal(t, 10*time.Second, got, "at speed 10 it is %v on after a second", got)
	})
}

func TestTheWatchdogResumesAWorldWithNoPageOpen(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := start(t)
		leave := f.Attend()
		f.Hold(15 * time.Second)
		time.Sleep(time.Hour)
		require.True(t, f.Status().Held, "it was let go although a page was open")
		leave()
		time.Sleep(14 * time.Second)
		assert.True(t, f.Status().Held, "it was let go too early")
		back := f.Attend() // a page is opened again
		time.Sleep(time.Minute)
		assert.True(t, f.Status().Held, "it was let go although the page came back")
		back()
		time.Sleep(17 * time.Second)
		s := f.Status()
		assert.True(t, !s.Held && !s.Clock.Paused && strings.Contains(s.LetGo, "no page was open for 1") && !s.Usual(),
			"status: %+v", s)
		assert.True(t, len(f.said) == 1 && f.said[0] == s.LetGo, "said: %q", f.said)
		f.Hold(0)
		s = f.Status()
		assert.True(t, s.LetGo == "" && s.Unattended == Unattended.String(), "held again: %+v", s)
	})
}

func TestTheWatchdogOpensForgottenGates(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := start(t)
		f.HoldAt(probe.Query{Station: probe.Watcher, Subject: "w1"}, time.Minute)
		time.Sleep(2 * time.Second)
		s := f.Status()
		assert.True(t, !s.Held && len(s.Gates) == 1 && len(s.Waiting) == 1 && !s.Clock.Paused, "status: %+v", s)
		time.Sleep(2 * time.Minute)
		s = f.Status()
		assert.True(t, len(s.Gates) == 0 && len(s.Waiting) == 0 && s.LetGo != "", "two minutes later: %+v", s)
	})
}

func TestAGateOfItsOwnOutlastsTheHold(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := start(t)
		f.HoldAt(probe.Query{Station: probe.Watcher}, 0)
		f.Hold(0)
		f.Release()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		s := f.Status()
		assert.True(t, !s.Held && len(s.Gates) == 1 && len(s.Waiting) == 1, "the world was let go: %+v", s)
		f.Release()
		synctest.Wait()
		s = f.Status()
		assert.True(t, s.Usual() && len(s.Waiting) == 0, "the gates were opened: %+v", s)
	})
}

func TestTheEndReleasesEveryGoroutineForGood(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := start(t)
		f.Hold(0)
		f.SetPaused(false)
		time.Sleep(2 * time.Second)
		f.SetPaused(true)
		require.Equal(t, 1, len(f.Status().Waiting), "no goroutine is held")
		f.end() // hangs if the worker stays at the gate
		f.Hold(0)
		assert.False(t, f.clock.State().Paused, "after the end the clock can still be stopped")
	})
}

// TestAGateCanBeClosedWhereAGoroutineCanBeHeld leaves out ring, store, indexer and processor, which have no such point.
func TestAGateCanBeClosedWhereAGoroutineCanBeHeld(t *testing.T) {
	assert.EqualSlices(t, []probe.Station{probe.HTTP, probe.Etcd, probe.Etcd3, probe.Incoming,
		probe.Dispatch, probe.Watcher, probe.Wire, probe.Reflector, probe.FIFO, probe.Listener, probe.Handler,
		probe.Workqueue}, Stations())
}
