package resources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"listwatch/internal/check/assert"
)

func TestPullPolicyFollowsFromTheTag(t *testing.T) {
	for image, want := range map[string]corev1.PullPolicy{
		"i": "Always", "i:latest": "Always", "i:1": "IfNotPresent", "r:5000/i": "Always", "r:5000/i:1": "IfNotPresent",
		"i@sha256:abc": "IfNotPresent",
	} {
		assert.Equal(t, want, defaultPullPolicy(image), image)
	}
}
