package worldclock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start returns a clock that runs in a bubble.
func start(t *testing.T) *Clock {
	c := New(time.Now())
	bubble.Go(t, "test.clock", c.Run)
	return c
}

// drained returns the number of ticks that ch delivers at the present time.
func drained(ch <-chan time.Time) int {
	for n := 0; ; n++ {
		synctest.Wait()
		select {
		case <-ch:
		default:
			return n
		}
	}
}

func TestSpeedScalesWhatOneWaitsFor(t *testing.T) {
	for _, test := range []struct {
		speed float64
		wall  time.Duration
	}{{MinSpeed, 3000 * time.Second}, {0.1, 30 * time.Second}, {1, 3 * time.Second},
		{MaxSpeed, 300 * time.Millisecond}} {
		bubble.Test(t, func(t *testing.T) {
			c := start(t)
			require.NoError(t, c.SetSpeed(test.speed))
			wall, world := time.Now(), c.Now()
			c.Sleep(3 * time.Second)
			if got := time.Since(wall); (got - test.wall).Abs() > time.Millisecond {
				t.Errorf("at %v: 3s took %v on the wall, want %v", test.speed, got, test.wall)
			}
			if got := c.Since(world); (got - 3*time.Second).Abs() > time.Millisecond {
				t.Errorf("at %v: the world is %v on, want 3s", test.speed, got)
			}
		})
	}
}

func TestAdvancingByAMinuteTicksSixtyTimes(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := start(t)
		c.SetPaused(true)
		began := c.Now()
		ticker := c.NewTicker(time.Second)
		defer ticker.Stop()
		var seen []time.Duration
		stop := bubble.Go(t, "test.ticks", func(ctx context.Context) {
			for {
				select {
				case <-ctx.Done():
					return
				case at := <-ticker.C():
					seen = append(seen, at.Sub(began))
				}
			}
		})
		c.Advance(time.Minute)
		synctest.Wait()
		stop()
		assert.True(t, len(seen) == 60 && seen[0] == time.Second && seen[59] == time.Minute,
			"got %d ticks: %v", len(seen), seen)
		assert.Equal(t, time.Minute, c.Since(began), "the world is on")
	})
}

func TestARunningClockCanBeMovedAndRunsOn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := start(t)
		began := c.Now()
		c.Advance(10 * time.Second)
		got := c.Since(began)
		assert.Equal(t, 10*time.Second, got, "moved by %v, want 10s", got)
		time.Sleep(time.Second)
		got = c.Since(began)
		assert.Equal(t, 11*time.Second, got, "a second later: %v, want 11s", got)
	})
}

func TestAdvancingToTheNextTimerFiresExactlyThat(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := start(t)
		c.SetPaused(true)
		assert.Equal(t, 0, len(c.Upcoming(1)), "no goroutine waits: timers")
		began := c.Now()
		late, early := c.NewTimer(9*time.Second), c.NewTimer(7*time.Second)
		due := c.Upcoming(1)[0]
		c.Advance(due.In)
		assert.True(t, c.Since(began) == 7*time.Second && drained(early.C()) == 1 && drained(late.C()) == 0,
			"got %+v at %v", due, c.Since(began))
		next := c.Upcoming(5)
		assert.True(t, len(next) == 1 && next[0].In == 2*time.Second, "upcoming: %+v, want the late one in 2s", next)
	})
}

func TestAStoppedTimerHasNothingToSay(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := start(t)
		timer := c.NewTimer(time.Second)
		time.Sleep(2 * time.Second) // the timer fires, and the test does not receive
		assert.True(t, timer.Stop() && drained(timer.C()) == 0, "after Stop the timer still fires")
		assert.False(t, timer.Stop(), "a stopped timer was stopped again")
		assert.False(t, timer.Reset(time.Second), "Reset of a stopped timer reports that it was set")
		assert.True(t, timer.Reset(3*time.Second), "Reset of a set timer reports that it was not")
		began := time.Now()
		<-timer.C()
		assert.Equal(t, 3*time.Second, time.Since(began), "fired after")
		timer.Reset(0)
		assert.Equal(t, 1, drained(timer.C()), "Reset(0) did not fire")
	})
}

func TestWhatIsDueAtOnceFiresWhileTheClockStands(t *testing.T) {
	c := New(time.Now())
	c.SetPaused(true)
	<-c.NewTimer(0).C()
	<-c.After(-time.Second)
}

func TestTimeNeverRunsBackwards(t *testing.T) {
	c := New(time.Now())
	for range 2 {
		bubble.Go(t, "test.reader", func(ctx context.Context) {
			forward := true
			for last := c.Now(); forward && ctx.Err() == nil; {
				now := c.Now()
				forward = assert.False(t, now.Before(last), "from %v back to %v", last, now)
				last = now
			}
		})
	}
	for i := range 2000 {
		_ = c.SetSpeed([]float64{0.001, 10, 1, 0.3}[i%4])
		c.SetPaused(i%3 == 0)
		if i%100 == 0 {
			c.Advance(time.Second)
		}
	}
}

// TestTheTimeOfAStoppedProgramIsNotCounted lets a minute pass without a heartbeat, as if the program were stopped.
func TestTheTimeOfAStoppedProgramIsNotCounted(t *testing.T) {
	for _, speed := range []float64{0.5, 1, MaxSpeed} {
		bubble.Test(t, func(t *testing.T) {
			c := New(time.Now())
			require.NoError(t, c.SetSpeed(speed))
			set(c, &c.beating, true)
			began := c.Now()
			timer := c.NewTimer(10 * time.Second)
			time.Sleep(61 * time.Second)
			ran := time.Duration(float64(reach) * speed)
			got := c.Since(began)
			assert.Equal(t, ran, got, "at %v: the first who asks is told that %v have passed, want %v", speed, got, ran)
			bubble.Go(t, "test.clock", c.Run)
			got = <-c.Stops()
			assert.Equal(t, 61*time.Second, got, "at %v: stopped for %v, want 61s", speed, got)
			wall := time.Now()
			<-timer.C()
			left := time.Duration(float64(10*time.Second-ran) / speed)
			if got := time.Since(wall); (got - left).Abs() > time.Millisecond {
				t.Errorf("at %v: the timer fired %v later, want the %v that were left", speed, got, left)
			}
		})
	}
}
