package apiserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	registry "listwatch/chapters/07-registry"
	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// FuzzPatches checks that no patch, valid or not, causes a 500.
func FuzzPatches(f *testing.F) {
	for i, patch := range []string{`[{"op":"add","path":"/metadata/labels/x","value":"1"}]`,
		`{"metadata":{"labels":null}}`, `{"spec":{"containers":[{"name":"c","$patch":"delete"}]}}`,
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {x: y}}\n"} {
		f.Add(i, []byte(patch))
	}
	f.Fuzz(func(t *testing.T, kind int, patch []byte) {
		a := newAPI(t)
		a.Create(podA)
		contentType := patchTypes[uint(kind)%uint(len(patchTypes))]
		w := a.Do("PATCH", podsPath+"/a?fieldManager=f", string(patch), "Content-Type", contentType)
		assert.True(t, w.Code < 500, "%s %s: got %d %s", contentType, patch, w.Code, w.Body)
	})
}

func TestPatches(t *testing.T) {
	const jsonPatch, mergePatch, strategicPatch = "application/json-patch+json", "application/merge-patch+json",
		"application/strategic-merge-patch+json"
	for name, c := range map[string]struct {
		contentType, body string
		code              int
		check             func(*corev1.Pod) bool
	}{
		"json": {jsonPatch, `[{"op":"add","path":"/metadata/labels/x","value":"1"}]`, 200,
			func(p *corev1.Pod) bool { return p.Labels["x"] == "1" && p.Labels["app"] == "web" }},
		"json, a copy": {jsonPatch, `[{"op":"copy","from":"/metadata/labels","path":"/metadata/annotations"}]`, 200,
			func(p *corev1.Pod) bool { return p.Annotations["app"] == "web" }},
		"merge": {mergePatch, `{"metadata":{"labels":{"app":null,"x":"1"}}}`, 200, func(p *corev1.Pod) bool {
			return len(p.Labels) == 1 && p.Labels["x"] == "1"
		}},
		"strategic": {strategicPatch, `{"spec":{"containers":[{"name":"c","image":"i:2"}]}}`, 200,
			func(p *corev1.Pod) bool { return p.Spec.Containers[0].Image == "i:2" && p.Generation == 2 }},
		"json, bad":       {jsonPatch, `{}`, 400, nil},
		"json, no target": {jsonPatch, `[{"op":"remove","path":"/metadata/labels/y"}]`, 422, nil},
		"json, test":      {jsonPatch, `[{"op":"test","path":"/metadata/name","value":"b"}]`, 422, nil},
		"json, many": {jsonPatch, `[` + strings.Repeat(`{"op":"test","path":"/kind","value":"Pod"},`,
			maxJSONPatchOperations) + `{"op":"test","path":"/kind","value":"Pod"}]`, 413, nil},
		"merge, bad":      {mergePatch, `{`, 400, nil},
		"merge, type":     {mergePatch, `{"spec":5}`, 422, nil},
		"merge, null":     {mergePatch, `null`, 400, nil},
		"merge, name":     {mergePatch, `{"metadata":{"name":"b"}}`, 400, nil},
		"merge, uid":      {mergePatch, `{"metadata":{"uid":"x"}}`, 422, nil},
		"merge, version":  {mergePatch, `{"metadata":{"resourceVersion":"1"}}`, 409, nil},
		"merge, invalid":  {mergePatch, `{"spec":{"restartPolicy":"Never"}}`, 422, nil},
		"strategic, bad":  {strategicPatch, `[`, 400, nil},
		"strategic, type": {strategicPatch, `{"spec":{"containers":5}}`, 422, nil},
		"no type":         {"", `{}`, 415, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			a.Create(
				`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"first"},` +
					`"spec":{"containers":[{"name":"c","image":"i"}]}}`)
			a.Create(podA)
			w := a.Do("PATCH", podsPath+"/a", c.body, "Content-Type", c.contentType)
			require.Equal(t, c.code, w.Code, "got %d %s, want %d", w.Code, w.Body, c.code)
			if c.check == nil {
				status := into[metav1.Status](t, w.Body)
				assert.Equal(t, c.code, int(status.Code), "got %+v", status)
				fields := map[string]string{"merge, invalid": "spec", "merge, uid": "metadata.uid"}
				field := cmp.Or(fields[name], "patch")
				assert.True(t, c.code != 422 || len(status.Details.Causes) != 0 &&
					status.Details.Causes[0].Field == field, "got %+v, want a cause at %s", status.Details, field)
				return
			}
			pod := into[corev1.Pod](t, w.Body)
			assert.True(t, c.check(&pod), "got %+v", pod)
		})
	}
	wantStatus(t, newAPI(t).Do("PATCH", podsPath+"/a", `{}`, "Content-Type", mergePatch), 404,
		metav1.StatusReasonNotFound)
}

func TestAStrictPatchRefusesUnknownFields(t *testing.T) {
	a := newAPI(t)
	a.Create(podA)
	const body = `{"spec":{"colour":"red"}}`
	wantStatus(t, a.Do("PATCH", podsPath+"/a?fieldValidation=Strict", body, "Content-Type",
		"application/merge-patch+json"), 422, metav1.StatusReasonInvalid)
	w := a.Do("PATCH", podsPath+"/a", body, "Content-Type", "application/merge-patch+json")
	assert.True(t, w.Code == 200 && len(w.Header()["Warning"]) == 1, "got %d %v", w.Code, w.Header())
}

// doubling returns a small patch, under 3 KB for n = 30, that copies an object's metadata into itself n times.
func doubling(n int) string {
	operations := []string{fmt.Sprintf(`{"op":"add","path":"/metadata/annotations","value":{"a":%q}}`,
		strings.Repeat("x", 1000))}
	for i := range n {
		operations = append(operations, fmt.Sprintf(`{"op":"copy","from":"/metadata","path":"/metadata/x%d"}`, i))
	}
	return "[" + strings.Join(operations, ",") + "]"
}

func TestAPatchIsBoundedInWhatItMakesOfAnObject(t *testing.T) {
	const containers = maxPatchElements + 1
	var list []string
	for i := range containers {
		list = append(list, fmt.Sprintf(`{"name":"c%d","image":"i"}`, i))
	}
	for name, c := range map[string]struct {
		contentType, patch string
		code               int
		reason             metav1.StatusReason
		message            string
	}{
		"copies that double the object": {"application/json-patch+json", doubling(30), 422, metav1.StatusReasonInvalid,
			"Unable to complete the copy"},
		"a deep merge": {"application/merge-patch+json", `{"metadata":` + strings.Repeat(`{"a":`, 9000) +
			"1" + strings.Repeat("}", 9001), 413, metav1.StatusReasonRequestEntityTooLarge, "depth"},
		"a deep value": {"application/json-patch+json", `[{"op":"add","path":"/metadata/a","value":` +
			strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}]`, 413,
			metav1.StatusReasonRequestEntityTooLarge, "depth"},
		"a deep strategic merge": {"application/strategic-merge-patch+json", `{"spec":` + strings.Repeat(`{"a":`,
			9000) + "1" + strings.Repeat("}", 9001), 413, metav1.StatusReasonRequestEntityTooLarge, "depth"},
		"a strategic merge of many": {"application/strategic-merge-patch+json", `{"spec":{"containers":[` +
			strings.Join(list, ",") + `]}}`, 413, metav1.StatusReasonRequestEntityTooLarge, "elements"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			a.Create(podA)
			w := a.Do("PATCH", podsPath+"/a", c.patch, "Content-Type", c.contentType)
			if status := wantStatus(t, w, c.code, c.reason); !strings.Contains(status.Message, c.message) {
				t.Errorf("message: got %.300q, want %q in it", status.Message, c.message)
			}
		})
	}
}

func TestALongPatchEndsWithItsRequest(t *testing.T) {
	operations := strings.Repeat(`{"op":"add","path":"/metadata/finalizers/0","value":"example.com/a"},`,
		maxJSONPatchOperations-1)
	patch := `[{"op":"add","path":"/metadata/finalizers","value":[]},` + strings.TrimSuffix(operations, ",") + "]"
	old := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", ResourceVersion: "7"}}
	resource := registry.Pods()
	s := &handlers.Scope{Storage: registry.New(registry.Config{Resource: resource}), Resource: resource,
		Kind: resource.GroupVersion.WithKind(resource.Kind)}
	p := &patcher{scope: s, namespace: "default", name: "a", patchType: types.JSONPatchType, patch: []byte(patch)}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.UpdatedObject(ctx, old)
	assert.True(t, errors.Is(err, context.Canceled), "got %v, want the end of the request", err)
}

// TestARefusalNamesAHundredProblemsAndSaysHowManyThereAre sends 9,900 problems: the error must still be short.
func TestARefusalNamesAHundredProblemsAndSaysHowManyThereAre(t *testing.T) {
	const n = 9900
	operations := []string{`{"op":"add","path":"/metadata/finalizers","value":[]}`}
	for i := range n {
		operations = append(operations,
			fmt.Sprintf(`{"op":"add","path":"/metadata/finalizers/0","value":"not valid %d!"}`, i))
	}
	a := newAPI(t)
	a.Create(podA)
	patch := "[" + strings.Join(operations, ",") + "]"
	w := a.Do("PATCH", podsPath+"/a", patch, "Content-Type", "application/json-patch+json")
	length := w.Body.Len()
	status := wantStatus(t, w, 422, metav1.StatusReasonInvalid)
	if length > 200<<10 || len(status.Details.Causes) != 100 || !strings.Contains(status.Message, fmt.Sprint(n)) {
		t.Errorf("got %d bytes with %d causes: %.100s … %s", length, len(status.Details.Causes), status.Message,
			status.Message[max(0, len(status.Message)-60):])
	}
}

// TestAnApplyOfTooManyFieldsIsRefusedBeforeTheWork expects a 413 before the merge, which takes quadratic time: the
// scope has no field manager, so a later check would come after a 415. An apply of a thousand keys is accepted.
func TestAnApplyOfTooManyFieldsIsRefusedBeforeTheWork(t *testing.T) {
	keys, finalizers := make([]string, maxAppliedFields+1), make([]string, maxAppliedFields+1)
	for i := range keys {
		keys[i], finalizers[i] = fmt.Sprintf("k%d: v", i), fmt.Sprintf("example.com/f%d", i)
	}
	resource := registry.Pods()
	s := &handlers.Scope{Storage: registry.New(registry.Config{Resource: resource}), Resource: resource,
		Kind: resource.GroupVersion.WithKind(resource.Kind)}
	for name, patch := range map[string]string{
		"keys":     "data: {" + strings.Join(keys, ", ") + "}",
		"elements": "metadata: {finalizers: [" + strings.Join(finalizers, ", ") + "]}",
	} {
		p := &patcher{scope: s, namespace: "default", name: "a", patchType: types.ApplyYAMLPatchType,
			patch: []byte(patch)}
		_, err := p.UpdatedObject(t.Context(), &corev1.Pod{})
		assert.Fails(t, err, apierrors.IsRequestEntityTooLargeError, name)
	}
	a := newAPI(t)
	many := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{` +
		strings.ReplaceAll(strings.Join(keys[:1000], `","`), ": ", `":"`)
	w := a.Do("PATCH", strings.Replace(podsPath, "pods", "configmaps", 1)+"/c?fieldManager=x", strings.Replace(many,
		`{k0`, `{"k0`, 1)+`"}}`, "Content-Type", "application/apply-patch+yaml")
	assert.Equal(t, http.StatusCreated, w.Code, "a thousand keys: got %d %.200s", w.Code, w.Body)
}

// TestAnObjectOfTooManyFieldsIsStoredWithoutNotes: a PUT keeps the managed fields of before, and an apply gets a 413.
func TestAnObjectOfTooManyFieldsIsStoredWithoutNotes(t *testing.T) {
	a := newAPI(t)
	const path = "/api/v1/namespaces/default/configmaps"
	large := func(n int) string {
		finalizers := make([]string, n)
		for i := range finalizers {
			finalizers[i] = fmt.Sprintf("a.a/%d", i)
		}
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","finalizers":["` +
			strings.Join(finalizers, `","`) + `"]}}`
	}
	const small = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`
	notes := func(w *httptest.ResponseRecorder) int {
		t.Helper()
		require.Equal(t, 2, w.Code/100, "got %.200s", w.Body)
		return len(into[metav1.PartialObjectMetadata](t, w.Body).ManagedFields)
	}
	assert.Equal(t, 1, notes(a.Do("POST", path, large(maxNotedFields-100))), "below the limit")
	assert.Equal(t, 1, notes(a.Do("PUT", path+"/c", large(maxNotedFields+1))), "above it, the notes of before")
	w := a.Do("PATCH", path+"/c?fieldManager=x", small, "Content-Type", applyType)
	wantStatus(t, w, 413, metav1.StatusReasonRequestEntityTooLarge)
	assert.Equal(t, 1, notes(a.Do("PUT", path+"/c", small)), "away from it")
	assert.Equal(t, 2, notes(a.Do("PATCH", path+"/c?fieldManager=x", strings.Replace(small, `"c"`,
		`"c","labels":{"x":"y"}`, 1), "Content-Type", applyType)), "small again")
}

func TestAClientThatAsksForItsRightsIsToldThatItHasAll(t *testing.T) {
	a := newAPI(t)
	const root = "/apis/authorization.k8s.io/v1/"
	ask := func(spec string) string {
		return `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":` + spec + `}`
	}
	for _, spec := range []string{
		`{"resourceAttributes":{"verb":"list","resource":"pods"}}`,
		`{"nonResourceAttributes":{"verb":"get","path":"/metrics"}}`,
	} {
		w := a.Do("POST", root+"selfsubjectaccessreviews", ask(spec))
		review := into[authorizationv1.SelfSubjectAccessReview](t, w.Body)
		assert.True(t, w.Code == 201 && review.Status.Allowed && review.Status.Reason == openToAll,
			"%s: got %d %+v", spec, w.Code, review.Status)
	}
	for _, spec := range []string{`{}`, `{"resourceAttributes":{},"nonResourceAttributes":{}}`} {
		wantStatus(t, a.Do("POST", root+"selfsubjectaccessreviews", ask(spec)), 400, metav1.StatusReasonBadRequest)
	}
	w := a.Do("POST", root+"selfsubjectrulesreviews", `{"spec":{"namespace":"default"}}`)
	rules := into[authorizationv1.SelfSubjectRulesReview](t, w.Body)
	assert.True(t, w.Code == 201 && len(rules.Status.ResourceRules) == 1 &&
		rules.Status.ResourceRules[0].Verbs[0] == "*", "got %d %+v", w.Code, rules.Status)
	w = a.Do("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", `{}`)
	who := into[authenticationv1.SelfSubjectReview](t, w.Body)
	assert.True(t, who.Status.UserInfo.Username == "system:anonymous", "got %d %+v", w.Code, who.Status)
}
