package reflector

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// errStopRequested ends a watch because the context is done.
var errStopRequested = errors.New("stop requested")

// VeryShortWatchError ends a watch that was closed within a second and said nothing. A server that does this would
// be asked in a tight loop, so it counts as a failure.
//
// Upstream: k8s.io/client-go/tools/cache/reflector.go: VeryShortWatchError
type VeryShortWatchError struct {
	Name string // of the reflector
}

func (e *VeryShortWatchError) Error() string {
	return fmt.Sprintf("%s: very short watch: closed within %v without an event", e.Name, veryShortWatch)
}

// isExpiredError reports whether the server no longer has the history that was asked for: 410, under either of the
// names it has had.
//
// Upstream: k8s.io/client-go/tools/cache/reflector.go: isExpiredError
func isExpiredError(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// isTooLargeResourceVersionError reports whether the server has not reached the resource version that was asked for.
// Servers say it with a cause; old ones only with their words.
//
// Upstream: k8s.io/client-go/tools/cache/reflector.go: isTooLargeResourceVersionError
func isTooLargeResourceVersionError(err error) bool {
	if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		return true
	}
	return apierrors.IsTimeout(err) && strings.Contains(err.Error(), "Too large resource version")
}

// isWatchErrorRetriable reports whether the server was never asked, so to speak: no server listened, or it had no time.
// Nothing is known to be wrong with our resource version, so waiting is enough.
//
// Upstream: k8s.io/client-go/tools/cache/reflector.go: isWatchErrorRetriable
func isWatchErrorRetriable(err error) bool {
	return utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err)
}
