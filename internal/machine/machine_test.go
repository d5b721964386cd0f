package machine

import (
	"testing"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestASecondWishIsRefusedWhileTheFirstIsGranted(t *testing.T) {
	asIs := Options{Modes: Today()}
	r := &Run{Options: asIs, host: &Host{}, first: asIs, next: make(chan Options, 1)}
	first, err := r.Switch("fifo", "delta")
	if err != nil {
		t.Fatal(err)
	}
	second, err := r.Switch("dispatch", "sequential")
	if err != nil {
		t.Fatal(err)
	}
	if err := first(); err != nil {
		t.Fatal(err)
	}
	if err := second(); !apierrors.IsConflict(err) {
		t.Errorf("the second: got %v, want a conflict", err)
	}
	if next := <-r.next; next.Modes["fifo"] != "delta" || next.Modes["dispatch"] != "two-phase" {
		t.Errorf("starts again with %+v", next)
	}
}
