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
	first := require.Value(r.Switch("fifo", "delta"))(t)
	second := require.Value(r.Switch("dispatch", "sequential"))(t)
	require.NoError(t, first())
	assert.Fails(t, second(), apierrors.IsConflict, "the second")
	next := (<-r.next).Switches
	assert.True(t, next["fifo"] == "delta" && next["dispatch"] == "two-phase", "starts again with %v", next)
}
