// Package require has functions of package assert in a form that ends the test if a check fails. As with
// testing.T.FailNow, only the goroutine that runs the test may call them.
package require

import "listwatch/internal/check/assert"

// TB receives the failures and can end the test.
type TB interface {
	assert.TB
	FailNow()
}

// Equal is [assert.Equal], but ends the test on a failure.
func Equal[T comparable](t TB, want, got T, what ...any) {
	t.Helper()
	end(t, assert.Equal(t, want, got, what...))
}

// NoError is [assert.NoError], but ends the test on a failure.
func NoError(t TB, err error, what ...any) {
	t.Helper()
	end(t, assert.NoError(t, err, what...))
}

// True is [assert.True], but ends the test on a failure.
func True(t TB, ok bool, what ...any) {
	t.Helper()
	end(t, assert.True(t, ok, what...))
}

// Value returns the value of a call, and ends the test if the call returned an error: require.Value(call())(t).
func Value[T any](value T, err error) func(TB) T {
	return func(t TB) T {
		t.Helper()
		NoError(t, err)
		return value
	}
}

// Must panics on an error. It is for calls in tables and examples, which have no testing.T.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}

func end(t TB, ok bool) {
	t.Helper()
	if !ok {
		t.FailNow()
	}
}
