// Package assert says in one line what a test expects, and reports what it got instead. Its names are those of
// stretchr/testify, which Kubernetes uses. Its types are checked by the compiler: an untyped constant takes the type of
// what it is compared with, and a pointer is compared as a pointer.
//
// The test goes on after a fault; package require has the same for a test that cannot. Each function returns
// whether all was well. What follows the values says what was looked at: a value alone, or a format and its arguments.
// They are evaluated in any case. A text that has both "got " and "want " is the whole message.
package assert

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// TB is what a fault is reported to: a *testing.T, or a *rapid.T.
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

// NoDiff compares as [cmp.Diff] does, and says where the two differ.
func NoDiff(t TB, want, got any, what ...any) bool {
	t.Helper()
	diff := cmp.Diff(want, got)
	return diff == "" || True(t, false, "%s(-want +got):\n%s", prefix(what), diff)
}

// NoError wants err to be nil.
func NoError(t TB, err error, what ...any) bool {
	t.Helper()
	return same(t, err == nil, err, error(nil), what)
}

// Fails wants an error of which is says true, as apierrors.IsNotFound does of a 404.
func Fails(t TB, err error, is func(error) bool, what ...any) bool {
	t.Helper()
	return is(err) || True(t, false, "%sgot %v, which is another kind of answer", prefix(what), err)
}

// True wants ok; what is the fault if it is false.
func True(t TB, ok bool, what ...any) bool {
	t.Helper()
	if !ok {
		t.Errorf("%s", text(what))
	}
	return ok
}

// False wants not to be bad; what is the fault if it is.
func False(t TB, bad bool, what ...any) bool {
	t.Helper()
	return True(t, !bad, what...)
}

func same(t TB, ok bool, got, want any, what []any) bool {
	t.Helper()
	if says := prefix(what); !ok && strings.Contains(says, "got ") && strings.Contains(says, "want ") {
		return True(t, false, what...) // it has both already
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
