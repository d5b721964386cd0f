package etcd3

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storage "listwatch/chapters/01-storage"
)

// The messages of 410. The texts are upstream's, because people search for them.
const (
	watchExpired    = "The resourceVersion for the provided watch is too old."
	listExpired     = "The resourceVersion for the provided list is too old."
	continueExpired = "The provided continue parameter is too old to display a consistent list result. You can " +
		"start a new list without the continue parameter."
	inconsistentContinue = "The provided continue parameter is too old to display a consistent list result. You can " +
		"start a new list without the continue parameter, or use the continue token in this response to retrieve the " +
		"remainder of the results. Continuing with the provided token results in an inconsistent list - objects that " +
		"were created, modified, or deleted between the time the first chunk was returned and now may show up in the " +
		"list."
)

// interpretError turns an error of one call to etcd into the error for the caller.
//
// Differs: upstream returns most of these unchanged, which becomes a 500. If a read finds etcd away, its client is
// asked here to come again in two seconds, as client-go does by itself.
func interpretError(err error, key string) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded), codeOf(err) == codes.DeadlineExceeded:
		return apierrors.NewTimeoutError("request did not complete within requested timeout", 0)
	case isTooLarge(err):
		return apierrors.NewRequestEntityTooLargeError(err.Error())
	case codeOf(err) == codes.Unavailable:
		return storage.NewUnreachableError(key, err.Error())
	default:
		return fmt.Errorf("etcd: %s: %w", key, err)
	}
}

// interpretWriteError turns an error of a transaction into the error for the caller. When the answer of etcd is lost or
// late, the transaction may have been committed all the same. The answer has no Retry-After, because client-go would
// send the same request again: a create would be answered with AlreadyExists, about the object that it has just
// created.
func interpretWriteError(err error, key string) error {
	if codeOf(err) == codes.Unavailable {
		return fmt.Errorf("etcd: %s: %w", key, err)
	}
	return interpretError(err, key)
}

// isTooLarge reports whether a request is larger than etcd accepts, or than etcd's client sends. The second error is
// gRPC's; etcd's own errors with that code mean something else.
func isTooLarge(err error) bool {
	var e rpctypes.EtcdError
	if errors.As(err, &e) {
		return errors.Is(err, rpctypes.ErrRequestTooLarge)
	}
	return status.Code(err) == codes.ResourceExhausted
}

// interpretListError turns an error of a range read into the error for the caller. continueKey is the key at which the
// read was to go on, "" on the first page: only a later page can be offered the rest without consistency.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/errors.go: interpretListError
// Differs: for a continue token together with recursive=false, which validation forbids, upstream speaks of the token.
func interpretListError(err error, continueKey, keyPrefix string) error {
	if !errors.Is(err, rpctypes.ErrCompacted) {
		return interpretError(err, keyPrefix)
	}
	if continueKey == "" {
		return apierrors.NewResourceExpired(listExpired)
	}
	return handleCompactedErrorForPaging(continueKey, keyPrefix)
}

// handleCompactedErrorForPaging returns a 410 whose metadata carries a token that still works:
// it reads the rest at the newest state, and the client decides whether that is good enough.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/errors.go: handleCompactedErrorForPaging
func handleCompactedErrorForPaging(continueKey, keyPrefix string) error {
	token, err := storage.EncodeContinue(continueKey, keyPrefix, -1)
	if err != nil {
		return apierrors.NewResourceExpired(continueExpired)
	}
	expired := apierrors.NewResourceExpired(inconsistentContinue)
	expired.ErrStatus.Continue = token
	return expired
}

// corruptObjectDeletedError reports the deletion of an object whose last state does not decode, with err as the reason:
// there is no state to send, but a client that knows the object should learn that the object is gone.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/watcher.go: corruptObjectDeletedError
// Differs: upstream reports a state that it cannot decrypt; one that does not decode is 500 InternalError there.
func corruptObjectDeletedError(err error) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonStoreReadError,
		Message: fmt.Sprintf("saw a DELETED event, but object data is corrupt - %v", err),
	}}
}

// interpretWatchError turns an error of a watch into one that carries a Status.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/errors.go: interpretWatchError
func interpretWatchError(err error) apierrors.APIStatus {
	var withStatus apierrors.APIStatus
	switch {
	case errors.Is(err, rpctypes.ErrCompacted), errors.Is(err, errPreviousCompacted):
		return apierrors.NewResourceExpired(watchExpired)
	case errors.As(err, &withStatus):
		return withStatus
	default:
		return apierrors.NewInternalError(err)
	}
}

// isCancelError reports whether err only says that a context was cancelled.
//
// Upstream: k8s.io/apiserver/pkg/storage/etcd3/watcher.go: isCancelError
func isCancelError(err error) bool {
	return errors.Is(err, context.Canceled) || codeOf(err) == codes.Canceled
}

// codeOf returns the gRPC code of an error, which etcd's own errors carry in a different way.
func codeOf(err error) codes.Code {
	var e rpctypes.EtcdError
	if errors.As(err, &e) {
		return e.Code()
	}
	return status.Code(err)
}
