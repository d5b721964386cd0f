// Package assert checks in one line whether a test gets what it expects, and otherwise reports what it got. Equal,
// NoError, True and False are named as in stretchr/testify, which Kubernetes uses. Except in NoDiff, the compiler
// checks the types: an untyped constant takes the type of the other value. Pointers are compared as pointers.
//
// The test goes on after a failed check; package require ends it. Each check returns whether it passed. The last
// arguments describe the check: a value alone, or a format and its arguments. Go evaluates them even if the check
// passes. Except in NoDiff and Fails, a text with both "got " and "want " is the whole message.
package assert

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// TB receives the failures: a *testing.T or a *rapid.T.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
}

// Equal compares with ==.
func Equal[T comparable](t TB, want, got T, what ...any) bool {
	t.Helper()
	return same(t, got == want, got, want, what)
}

// EqualSlices compares element by element with ==; nil equals empty.
func EqualSlices[T comparable](t TB, want, got []T, what ...any) bool {
	t.Helper()
	return same(t, slices.Equal(got, want), got, want, what)
}

// NoDiff compares as [cmp.Diff] does, and reports the differences.
func NoDiff(t TB, want, got any, what ...any) bool {
	t.Helper()
	diff := cmp.Diff(want, got)
	return diff == "" || True(t, false, "%s(-want +got):\n%s", prefix(what), diff)
}

// NoError expects err to be nil.
func NoError(t TB, err error, what ...any) bool {
	t.Helper()
	return same(t, err == nil, err, error(nil), what)
}

// Fails expects that is(err) is true. For example, is may be apierrors.IsNotFound.
func Fails(t TB, err error, is func(error) bool, what ...any) bool {
	t.Helper()
	return is(err) || True(t, false, "%sgot %v, which is another kind of answer", prefix(what), err)
}

// ErrorOf drops a call's first result and returns its error.
func ErrorOf[T any](_ T, err error) error { return err }

// True expects ok. what describes the failure if ok is false.
func True(t TB, ok bool, what ...any) bool {
	t.Helper()
	if !ok {
		t.Errorf("%s", text(what))
	}
	return ok
}

// False expects bad to be false. what describes the failure if it is true.
func False(t TB, bad bool, what ...any) bool {
	t.Helper()
	return True(t, !bad, what...)
}

func same(t TB, ok bool, got, want any, what []any) bool {
	t.Helper()
	if says := prefix(what); !ok && strings.Contains(says, "got ") && strings.Contains(says, "want ") {
		return True(t, false, what...) // the text already names both values
	}
	return ok || True(t, false, "%sgot %v, want %v", prefix(what), got, want)
}

func prefix(what []any) string {
	if len(what) == 0 {
		return ""
	}
	return text(what) + ": "
}

func text(what []any) string {
	switch len(what) {
	case 0:
		return "does not hold"
	case 1:
		return fmt.Sprint(what[0])
	}
	return fmt.Sprintf(what[0].(string), what[1:]...)
}
