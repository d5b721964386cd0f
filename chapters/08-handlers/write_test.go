package handlers

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/kube/negotiation"
	"listwatch/internal/kube/scheme"
)

func TestBodiesCanBeJSONYAMLAndProtobuf(t *testing.T) {
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	var protobuf bytes.Buffer
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "c", Image: "i"}}}}
	require.NoError(t, scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion).Encode(pod,
		&protobuf))
	for contentType, body := range map[string]string{
		"":                               podA,
		"application/json":               podA,
		"application/json;charset=utf-8": podA,
		"application/yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n" +
			"spec: {containers: [{name: c, image: i}]}\n",
		runtime.ContentTypeProtobuf: protobuf.String(),
	} {
		t.Run(contentType, func(t *testing.T) {
			w := newAPI(t).do("POST", podsPath, body, "Content-Type", contentType)
			got := into[corev1.Pod](t, w.Body)
			assert.True(t, w.Code == http.StatusCreated && got.Name == "a" && got.UID != "" &&
				got.Kind == "Pod" && got.APIVersion == "v1", "got %d %+v", w.Code, got)
		})
	}
}

func TestBodiesThatAreNoPodsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		code int
	}{
		"empty":           {"", 400},
		"not JSON":        {"{", 400},
		"null":            {"null", 422},
		"another kind":    {`{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}`, 400},
		"unknown kind":    {`{"apiVersion":"v1","kind":"Nude"}`, 400},
		"another version": {strings.Replace(podA, `"v1"`, `"v2"`, 1), 400},
		"wrong type":      {strings.Replace(podA, `"a"`, `{}`, 1), 400},
		"invalid":         {strings.Replace(podA, `"i:1"`, `""`, 1), 422},
		"too large":       {podA + strings.Repeat(" ", negotiation.MaxRequestBodyBytes), 413},
	} {
		t.Run(name, func(t *testing.T) {
			reason := map[int]metav1.StatusReason{400: metav1.StatusReasonBadRequest,
				413: metav1.StatusReasonRequestEntityTooLarge, 422: metav1.StatusReasonInvalid}[c.code]
			wantStatus(t, newAPI(t).do("POST", podsPath, c.body), c.code, reason)
		})
	}
}

func TestUnknownFieldsAreRefusedNamedOrDropped(t *testing.T) {
	odd := strings.Replace(podA, `"spec":{`, `"spec":{"colour":"red",`, 1)
	for directive, c := range map[string]struct {
		code     int
		warnings int
	}{"Strict": {400, 0}, "Warn": {201, 1}, "": {201, 1}, "Ignore": {201, 0}, "Perhaps": {422, 0}} {
		t.Run(directive, func(t *testing.T) {
			w := newAPI(t).do("POST", podsPath+"?fieldValidation="+directive, odd)
			assert.True(t, w.Code == c.code && len(w.Header()["Warning"]) == c.warnings,
				"got %d, warnings %v, want %d, %d", w.Code, w.Header()["Warning"], c.code, c.warnings)
			if directive == "Strict" && !strings.Contains(w.Body.String(), `unknown field \"spec.colour\"`) {
				t.Errorf("got %s", w.Body)
			}
		})
	}
}

func TestAPutMustBeAboutTheObjectOfItsPath(t *testing.T) {
	a := newAPI(t)
	a.create(podA)
	w := a.do("PUT", podsPath+"/a", strings.Replace(podA, "web", "db", 1))
	assert.Equal(t, 200, w.Code, "got %d %s", w.Code, w.Body)
	wantStatus(t, a.do("PUT", podsPath+"/b", podA), 400, metav1.StatusReasonBadRequest)
	wantStatus(t, a.do("PUT", podsPath+"/a", strings.Replace(podA, `"name":"a"`, `"namespace":"x","name":"a"`, 1)),
		400, metav1.StatusReasonBadRequest)
	wantStatus(t, a.do("PUT", podsPath+"/b", strings.Replace(podA, `"name":"a"`, `"name":"b"`, 1)), 404,
		metav1.StatusReasonNotFound)
	wantStatus(t, a.do("PUT", podsPath+"/a?dryRun=Some", podA), 422, metav1.StatusReasonInvalid)
}

func TestStatusAndBindingArePathsOfTheirOwn(t *testing.T) {
	a := newAPI(t)
	a.create(podA)
	if w := a.do("POST", podsPath+"/a/binding",
		`{"apiVersion":"v1","kind":"Binding","metadata":{"name":"a"},"target":{"name":"n1"}}`); w.Code != 201 {
		t.Fatalf("binding: got %d %s", w.Code, w.Body)
	}
	w := a.do("PUT", podsPath+"/a/status", strings.Replace(podA, `"spec":{`,
		`"status":{"phase":"Running"},"spec":{"nodeName":"n2",`, 1))
	pod := into[corev1.Pod](t, w.Body)
	assert.True(t, w.Code == 200 && pod.Status.Phase == corev1.PodRunning && pod.Spec.NodeName == "n1",
		"status: got %d %+v", w.Code, pod)
	wantStatus(t, a.do("POST", podsPath+"/b/binding", `{"metadata":{"name":"b"},"target":{"name":"n1"}}`), 404,
		metav1.StatusReasonNotFound)
}

func TestDeleteTakesItsOptionsFromBodyOrQuery(t *testing.T) {
	const scheduled = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"nodeName":"n1",` +
		`"containers":[{"name":"c","image":"i"}]}}`
	for name, c := range map[string]struct {
		query, body string
		code        int
		grace       int64
	}{
		"nothing":         {"", "", 200, 30},
		"query":           {"?gracePeriodSeconds=7", "", 200, 7},
		"body":            {"", `{"gracePeriodSeconds":7}`, 200, 7},
		"body, v1":        {"", `{"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":7}`, 200, 7},
		"body, meta":      {"", `{"apiVersion":"meta.k8s.io/v1","kind":"DeleteOptions","gracePeriodSeconds":7}`, 200, 7},
		"propagation":     {"", `{"propagationPolicy":"Background"}`, 200, 30},
		"old orphan":      {"", `{"orphanDependents":false}`, 202, 30},
		"bad propagation": {"", `{"propagationPolicy":"Sideways"}`, 422, 0},
		"bad body":        {"", `[`, 400, 0},
		"another kind":    {"", scheduled, 400, 0},
		"precondition":    {"", `{"preconditions":{"uid":"other"}}`, 409, 0},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			a.create(scheduled)
			w := a.do("DELETE", podsPath+"/a"+c.query, c.body)
			require.Equal(t, c.code, w.Code, "got %d %s, want %d", w.Code, w.Body, c.code)
			if c.grace == 0 {
				return
			}
			pod := into[corev1.Pod](t, w.Body)
			assert.True(t, pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == c.grace,
				"got %+v, want a grace period of %d", pod.ObjectMeta, c.grace)
		})
	}
}

func TestDeleteCollectionDeletesWhatIsSelected(t *testing.T) {
	a := newAPI(t)
	a.create(podA)
	a.create(strings.NewReplacer(`"a"`, `"b"`, "web", "db").Replace(podA))
	w := a.do("DELETE", podsPath+"?labelSelector=app%3Dweb", "")
	require.Equal(t, 200, w.Code, "got %d %s", w.Code, w.Body)
	left := into[corev1.PodList](t, a.do("GET", podsPath, "").Body)
	assert.True(t, len(left.Items) == 1 && left.Items[0].Name == "b", "left: got %+v", left.Items)
}
