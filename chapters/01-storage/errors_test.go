package storage

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"listwatch/internal/check/assert"
)

func TestStatusOfEachError(t *testing.T) {
	_, invalid := versioner.ParseResourceVersion("x")
	for name, test := range map[string]struct {
		err    error
		code   int32
		reason metav1.StatusReason
	}{
		"not found": {NewKeyNotFoundError("/k", 0), http.StatusNotFound, metav1.StatusReasonNotFound},
		"exists":    {NewKeyExistsError("/k", 0), http.StatusConflict, metav1.StatusReasonAlreadyExists},
		"lost a race": {&StorageError{Code: ResourceVersionConflicts}, http.StatusConflict,
			metav1.StatusReasonConflict},
		"refused": {NewInvalidObjError("/k", "uid"), http.StatusConflict, metav1.StatusReasonConflict},
		"unreachable": {NewUnreachableError("/k", "gone"), http.StatusInternalServerError,
			metav1.StatusReasonServerTimeout},
		"wrapped": {fmt.Errorf("get: %w", NewKeyNotFoundError("/k", 0)), http.StatusNotFound,
			metav1.StatusReasonNotFound},
		"invalid":    {invalid, http.StatusBadRequest, metav1.StatusReasonBadRequest},
		"too large":  {NewTooLargeResourceVersionError(9, 7, 1), http.StatusGatewayTimeout, metav1.StatusReasonTimeout},
		"of no code": {&StorageError{}, http.StatusInternalServerError, metav1.StatusReasonInternalError},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := InterpretError(test.err, "get", corev1.Resource("pods"), "a").(apierrors.APIStatus)
			assert.True(t, ok && got.Status().Code == test.code && got.Status().Reason == test.reason,
				"got %+v, want %d %s", got, test.code, test.reason)
		})
	}
	strange := errors.New("strange")
	assert.Equal(t, InterpretError(strange, "get", corev1.Resource("pods"), "a"), strange)
}

func TestTooLargeSaysHowFarTheServerIsAndWhenToRetry(t *testing.T) {
	err := NewTooLargeResourceVersionError(9, 7, ResourceVersionTooHighRetrySeconds)
	want := "Timeout: Too large resource version: 9, current: 7"
	assert.Equal(t, err.Error(), want, "got %q, want %q", err, want)
	seconds, ok := apierrors.SuggestsClientDelay(err)
	assert.True(t, ok && seconds == 1, "retry after: got %d, %v, want 1", seconds, ok)
	assert.True(t, apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge),
		"the cause is missing by which clients recognise it")
}

func TestAnErrorTellsItsCode(t *testing.T) {
	for code, err := range map[ErrorCode]error{
		KeyNotFound: NewKeyNotFoundError("/k", 1), KeyExists: NewKeyExistsError("/k", 1),
		InvalidObj:  NewInvalidObjError("/k", ""),
		Unreachable: fmt.Errorf("create: %w", NewUnreachableError("/k", "")), 0: errors.New("x"),
	} {
		assert.Equal(t, CodeOf(err), code, err)
		assert.Equal(t, IsNotFound(err), code == KeyNotFound, "%v: taken for a missing key", err)
	}
}

func TestPreconditions(t *testing.T) {
	for name, test := range map[string]struct {
		p  *Preconditions
		ok bool
	}{
		"none":      {nil, true},
		"empty":     {&Preconditions{}, true},
		"right":     {&Preconditions{UID: ptr(types.UID("uid-1")), ResourceVersion: ptr("7")}, true},
		"wrong uid": {&Preconditions{UID: ptr(types.UID("uid-2"))}, false},
		"wrong rv":  {&Preconditions{ResourceVersion: ptr("8")}, false},
		"empty uid": {&Preconditions{UID: ptr(types.UID(""))}, false},
	} {
		if err := test.p.Check("/k", pod("a", "")); (err == nil) != test.ok || err != nil && CodeOf(err) != InvalidObj {
			t.Errorf("%s: got %v", name, err)
		}
	}
	assert.True(t, (&Preconditions{}).Check("/k", &metav1.Status{}) != nil, "a Status fulfils preconditions")
}
