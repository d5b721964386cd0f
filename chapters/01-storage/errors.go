package storage

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ErrorCode says what kind of [StorageError] it is.
type ErrorCode int

// The codes. Each is followed by the status it becomes for a client.
const (
	KeyNotFound ErrorCode = iota + 1 // 404 NotFound
	KeyExists                        // 409 AlreadyExists
	InvalidObj                       // 409 Conflict: a precondition failed
	Unreachable                      // 500 ServerTimeout, Retry-After 2
)

var codeNames = map[ErrorCode]string{
	KeyNotFound: "key not found", KeyExists: "key exists", InvalidObj: "invalid object",
	Unreachable: "server unreachable",
}

// StorageError is an error about a key. It knows nothing of resources and statuses: the registry translates it.
//
// Upstream: k8s.io/apiserver/pkg/storage/errors.go: StorageError
type StorageError struct {
	Code            ErrorCode
	Key             string
	ResourceVersion int64
	Message         string // for a person; may be empty
}

func (e *StorageError) Error() string {
	return fmt.Sprintf("StorageError: %s, key: %s, resource version: %d: %s", codeNames[e.Code], e.Key,
		e.ResourceVersion, e.Message)
}

// NewKeyNotFoundError returns an error for a key that does not exist at rv.
func NewKeyNotFoundError(key string, rv int64) *StorageError {
	return &StorageError{Code: KeyNotFound, Key: key, ResourceVersion: rv}
}

// NewKeyExistsError returns an error for a key that exists already.
func NewKeyExistsError(key string, rv int64) *StorageError {
	return &StorageError{Code: KeyExists, Key: key, ResourceVersion: rv}
}

// NewInvalidObjError returns an error for an object that breaks a precondition.
func NewInvalidObjError(key, message string) *StorageError {
	return &StorageError{Code: InvalidObj, Key: key, Message: message}
}

// NewUnreachableError returns an error for a store that did not answer.
func NewUnreachableError(key, message string) *StorageError {
	return &StorageError{Code: Unreachable, Key: key, Message: message}
}

// CodeOf returns the code of the [StorageError] in err, 0 if there is none.
func CodeOf(err error) ErrorCode {
	var e *StorageError
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code
}

// IsNotFound reports whether err is about a missing key.
func IsNotFound(err error) bool { return CodeOf(err) == KeyNotFound }

// InvalidError is a client's value that does not parse, found before a resource is known.
type InvalidError struct{ Err *field.Error }

func (e InvalidError) Error() string { return e.Err.Error() }

// tooLargeResourceVersion is the message by which clients of every age recognise the error.
const tooLargeResourceVersion = "Too large resource version"

// ResourceVersionTooHighRetrySeconds is the Retry-After that comes with [NewTooLargeResourceVersionError].
const ResourceVersionTooHighRetrySeconds = 1

// NewTooLargeResourceVersionError returns 504 Timeout for a version that is not reached. By its
// cause, ResourceVersionTooLarge, clients can tell it from a real timeout. A cache returns it
// after three seconds, with Retry-After 1; the etcd3 store at once, to a GET or a LIST without.
//
// Upstream: k8s.io/apiserver/pkg/storage/errors.go: NewTooLargeResourceVersionError
func NewTooLargeResourceVersionError(want, current uint64, retrySeconds int) error {
	message := fmt.Sprintf("%s: %d, current: %d", tooLargeResourceVersion, want, current)
	err := apierrors.NewTimeoutError(message, retrySeconds)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type:    metav1.CauseTypeResourceVersionTooLarge,
		Message: tooLargeResourceVersion,
	}}
	return err
}

// InterpretError turns an error of an [Interface] into the one a client of the resource is to
// see. Errors that carry a Status already are returned as they are. op is the verb: "get",
// "list", "create", "update", "delete", "watch".
//
// Upstream: k8s.io/apiserver/pkg/storage/errors/storage.go
// Differs: one function instead of six; an unparsable resource version is 400 also for a watch
// and for a GET from a cache, where upstream lets it become a 500.
func InterpretError(err error, op string, resource schema.GroupResource, name string) error {
	var invalid InvalidError
	if errors.As(err, &invalid) {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid %s: %v", op, invalid))
	}
	var e *StorageError
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code {
	case KeyNotFound:
		return apierrors.NewNotFound(resource, name)
	case KeyExists:
		return apierrors.NewAlreadyExists(resource, name)
	case InvalidObj:
		return apierrors.NewConflict(resource, name, errors.New(e.Message))
	case Unreachable:
		return apierrors.NewServerTimeout(resource, op, 2)
	default:
		return apierrors.NewInternalError(err)
	}
}
