package apiserver

import (
	"fmt"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"

	"listwatch/internal/check/assert"
)

// TestTheScaleOfADeploymentIsItsSize: read and written by all ways, of its newest version, and never below nothing.
func TestTheScaleOfADeploymentIsItsSize(t *testing.T) {
	a := newAPI(t)
	const deployments = "/apis/apps/v1/namespaces/default/deployments"
	w := a.do("POST", deployments, `{"metadata":{"name":"web"},"spec":{"replicas":3,"selector":{"matchLabels":{"a":"b"}},`+
		`"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`)
	assert.Equal(t, 201, w.Code, w.Body)
	scale := func(method, body string, headers ...string) (int, autoscalingv1.Scale) {
		w := a.do(method, deployments+"/web/scale", body, headers...)
		if w.Code != 200 {
			return w.Code, autoscalingv1.Scale{}
		}
		return w.Code, into[autoscalingv1.Scale](t, w.Body)
	}
	code, read := scale("GET", "")
	assert.True(t, code == 200 && read.Spec.Replicas == 3 && read.Status.Selector == "a=b", "got %d %+v", code, read)
	put := func(version string, replicas int) int {
		code, _ := scale("PUT", fmt.Sprintf(`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web",`+
			`"resourceVersion":%q},"spec":{"replicas":%d}}`, version, replicas))
		return code
	}
	assert.Equal(t, 200, put(read.ResourceVersion, 4), "PUT")
	assert.Equal(t, 409, put(read.ResourceVersion, 5), "PUT of an old version")
	assert.Equal(t, 422, put("", -1), "PUT of less than nothing")
	code, patched := scale("PATCH", `{"spec":{"replicas":2}}`, "Content-Type", "application/merge-patch+json")
	assert.True(t, code == 200 && patched.Spec.Replicas == 2, "PATCH: got %d %+v", code, patched)
	assert.Equal(t, 415, a.do("PATCH", deployments+"/web/scale?fieldManager=m", `{"spec":{"replicas":2}}`, "Content-Type",
		applyType).Code, "apply")
	assert.Equal(t, 404, a.do("GET", deployments+"/other/scale", "").Code, "of what is not there")
	assert.Equal(t, 404, a.do("PATCH", deployments+"/other/scale", `{"spec":{"replicas":2}}`, "Content-Type",
		"application/merge-patch+json").Code, "PATCH of what is not there")
}
