package cacher

import (
	"testing"
	"time"

	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
)

func TestTheBudgetBeginsAtNothingAndAccruesFiveMillisecondsATenthUpToAHundred(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := newTimeBudget(clock.RealClock{})
		is := func(what string, got, want time.Duration) {
			t.Helper()
			assert.Equal(t, got, want, what)
		}
		is("at first", b.takeAvailable(), 0)
		time.Sleep(100 * time.Millisecond)
		is("after 100 ms", b.available(), 5*time.Millisecond)
		is("taken", b.takeAvailable(), 5*time.Millisecond)
		is("taken again", b.takeAvailable(), 0)
		time.Sleep(time.Second)
		is("after a second", b.takeAvailable(), 50*time.Millisecond)
		time.Sleep(100 * 365 * 24 * time.Hour)
		is("after a century", b.takeAvailable(), 100*time.Millisecond)
		b.returnUnused(30 * time.Millisecond)
		is("returned", b.available(), 30*time.Millisecond)
		b.returnUnused(-time.Hour)
		is("overdrawn", b.available(), 30*time.Millisecond)
		b.returnUnused(time.Hour)
		is("returned too much", b.takeAvailable(), 100*time.Millisecond)
	})
}
