package storage

import (
	"errors"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"listwatch/internal/check/assert"
)

var versioner APIObjectVersioner

func TestResourceVersionsThatAreNumbers(t *testing.T) {
	for text, want := range map[string]uint64{"": 0, "0": 0, "7": 7, "007": 7, "9223372036854775807": 1<<63 - 1} {
		got, err := versioner.ParseResourceVersion(text)
		assert.True(t, err == nil && got == want, "%q: got %d, %v, want %d", text, got, err, want)
	}
	for _, text := range []string{"x", "-1", "+1", "1.0", "0x1", " 1", "9223372036854775808", "١"} {
		var invalid InvalidError
		got, err := versioner.ParseResourceVersion(text)
		assert.True(t, errors.As(err, &invalid), "%q: got %d, %v, want an InvalidError", text, got, err)
	}
}

func TestObjectIsStampedAndBlanked(t *testing.T) {
	p := &corev1.Pod{}
	if err := versioner.UpdateObject(p, 42); err != nil || p.ResourceVersion != "42" {
		t.Errorf("got %q, %v, want 42", p.ResourceVersion, err)
	}
	rv, err := versioner.ObjectResourceVersion(p)
	assert.True(t, err == nil && rv == 42, "got %d, %v, want 42", rv, err)
	p.SelfLink = "/api/v1/pods/a"
	if err := versioner.PrepareObjectForStorage(p); err != nil || p.ResourceVersion != "" || p.SelfLink != "" {
		t.Errorf("got %q, %q, %v, want both blank", p.ResourceVersion, p.SelfLink, err)
	}
	assert.True(t, versioner.UpdateObject(p, 0) != nil, "stamped with 0")
	assert.True(t, versioner.UpdateObject(&metav1.Status{}, 1) != nil, "a Status was stamped")
}

func TestListIsStamped(t *testing.T) {
	list := &corev1.PodList{}
	if err := versioner.UpdateList(list, 42, "token", ptr(int64(3))); err != nil || list.ResourceVersion != "42" ||
		list.Continue != "token" || *list.RemainingItemCount != 3 {
		t.Errorf("got %+v, %v", list.ListMeta, err)
	}
	assert.True(t, versioner.UpdateList(list, 0, "", nil) != nil, "stamped with 0")
}

// FuzzParseResourceVersion: what parses is a number that is written the same way again, leading zeros aside.
func FuzzParseResourceVersion(f *testing.F) {
	for _, seed := range []string{"", "0", "7", "-1", "1e3", "18446744073709551615", "00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rv, err := versioner.ParseResourceVersion(text)
		if err != nil {
			return
		}
		if again, err := versioner.ParseResourceVersion(strconv.FormatUint(rv, 10)); err != nil || again != rv ||
			int64(rv) < 0 {
			t.Errorf("%q: got %d, then %d, %v", text, rv, again, err)
		}
	})
}

func TestVersionsForProbesAreZeroIfTheyAreNoNumbers(t *testing.T) {
	pod := &corev1.Pod{}
	for text, want := range map[string]uint64{"": 0, "7": 7, "x": 0, "9223372036854775808": 0} {
		pod.ResourceVersion = text
		assert.Equal(t, VersionOf(pod), want, "%q", text)
	}
	assert.Equal(t, VersionOf("no object"), 0, "no object")
}
