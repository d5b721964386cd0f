package etcd3

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	storage "listwatch/chapters/01-storage"
	"listwatch/internal/check/assert"
)

func TestWhatAClientIsToldOfEtcdsErrors(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want func(error) bool
	}{
		"deadline":            {context.DeadlineExceeded, apierrors.IsTimeout},
		"deadline, from afar": {status.Error(codes.DeadlineExceeded, "late"), apierrors.IsTimeout},
		"too large for etcd":  {rpctypes.ErrRequestTooLarge, apierrors.IsRequestEntityTooLargeError},
		"too large for gRPC": {status.Error(codes.ResourceExhausted, "trying to send message larger than max"),
			apierrors.IsRequestEntityTooLargeError},
		"away":             {status.Error(codes.Unavailable, "connection refused"), apierrors.IsServerTimeout},
		"without a leader": {rpctypes.ErrNoLeader, apierrors.IsServerTimeout},
		"full": {rpctypes.ErrNoSpace, func(err error) bool {
			return errors.Is(err,
				rpctypes.ErrNoSpace)
		}},
		"too busy": {rpctypes.ErrTooManyRequests, func(err error) bool {
			return errors.Is(err,
				rpctypes.ErrTooManyRequests)
		}},
		"cancelled by a caller": {context.Canceled, func(err error) bool { return errors.Is(err, context.Canceled) }},
	} {
		t.Run(name, func(t *testing.T) {
			got := storage.InterpretError(interpretError(test.err, key("a")), "get", corev1.Resource("pods"), "a")
			assert.True(t, test.want(got), "got %v (%T)", got, got)
		})
	}
}

func TestAWriteThatMayHaveHappenedIsNotToBeRepeated(t *testing.T) {
	for _, err := range []error{rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail,
		status.Error(codes.Unavailable, "transport is closing"), context.DeadlineExceeded} {
		got := storage.InterpretError(interpretWriteError(err, key("a")), "create", corev1.Resource("pods"), "a")
		_, again := apierrors.SuggestsClientDelay(got)
		assert.False(t, again, "%v: got %v, which tells the client to come again", err, got)
	}
}

func TestCancellationIsRecognisedInEveryForm(t *testing.T) {
	for _, err := range []error{context.Canceled, fmt.Errorf("watch: %w", context.Canceled),
		status.Error(codes.Canceled, "gone")} {
		assert.True(t, isCancelError(err), "%v: not recognised", err)
	}
	for _, err := range []error{context.DeadlineExceeded, rpctypes.ErrCompacted, errors.New("canceled")} {
		assert.False(t, isCancelError(err), "%v: taken for a cancellation", err)
	}
}
