package machine

import (
	"testing"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	pipeline "listwatch/chapters/15-pipeline"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestASecondWishIsRefusedWhileTheFirstIsGranted(t *testing.T) {
	asIs := Options{Switches: pipeline.Today()}
	r := &Run{Options: asIs, host: &Host{}, first: asIs, next: make(chan Options, 1)}
	first, err := r.Switch("fifo", "delta")
	require.NoError(t, err)
	second, err := r.Switch("dispatch", "sequential")
	require.NoError(t, err)
	require.NoError(t, first())
	assert.Fails(t, second(), apierrors.IsConflict, "the second")
	if next := <-r.next; next.Switches["fifo"] != "delta" || next.Switches["dispatch"] != "two-phase" {
		t.Errorf("starts again with %+v", next)
	}
}
