package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	registry "listwatch/chapters/07-registry"
	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/check/assert"
)

// doubling is a patch of some 2 KB that copies an object into itself, n times.
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
			a.create(podA)
			w := a.do("PATCH", podsPath+"/a", c.patch, "Content-Type", c.contentType)
			if status := wantStatus(t, w, c.code, c.reason); !strings.Contains(status.Message, c.message) {
				t.Errorf("message: got %.300q, want %q in it", status.Message, c.message)
			}
		})
	}
}

func TestAFewCopiesAreAllowed(t *testing.T) {
	a := newAPI(t)
	a.create(podA)
	patch := `[{"op":"copy","from":"/metadata/labels","path":"/metadata/annotations"}]`
	w := a.do("PATCH", podsPath+"/a", patch, "Content-Type", "application/json-patch+json")
	if got := into[corev1.Pod](t, w.Body); w.Code != http.StatusOK || got.Annotations["app"] != "web" {
		t.Errorf("got %d, annotations %v", w.Code, got.Annotations)
	}
}

func TestALongPatchEndsWithItsRequest(t *testing.T) {
	operations := strings.Repeat(`{"op":"add","path":"/metadata/finalizers/0","value":"example.com/a"},`,
		maxJSONPatchOperations-1)
	patch := `[{"op":"add","path":"/metadata/finalizers","value":[]},` + strings.TrimSuffix(operations, ",") + "]"
	old := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", ResourceVersion: "7"}}
	resource := registry.Pods()
	s := &handlers.Scope{Storage: registry.New(registry.Config{Resource: resource}), Resource: resource,
		Kind: resource.GroupVersionKind()}
	p := &patcher{scope: s, namespace: "default", name: "a", patchType: types.JSONPatchType, patch: []byte(patch)}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.UpdatedObject(ctx, old)
	assert.True(t, errors.Is(err, context.Canceled), "got %v, want the end of the request", err)
}

// A refusal is read by a person. Its length must not grow with what was sent, nor the work of putting it together.
func TestARefusalNamesAHundredProblemsAndSaysHowManyThereAre(t *testing.T) {
	const n = 9900
	operations := []string{`{"op":"add","path":"/metadata/finalizers","value":[]}`}
	for i := range n {
		operations = append(operations,
			fmt.Sprintf(`{"op":"add","path":"/metadata/finalizers/0","value":"not valid %d!"}`, i))
	}
	a := newAPI(t)
	a.create(podA)
	patch := "[" + strings.Join(operations, ",") + "]"
	w := a.do("PATCH", podsPath+"/a", patch, "Content-Type", "application/json-patch+json")
	length := w.Body.Len()
	status := wantStatus(t, w, 422, metav1.StatusReasonInvalid)
	if length > 200<<10 || len(status.Details.Causes) != 100 || !strings.Contains(status.Message, fmt.Sprint(n)) {
		t.Errorf("got %d bytes with %d causes: %.100s … %s", length, len(status.Details.Causes), status.Message,
			status.Message[max(0, len(status.Message)-60):])
	}
}

// What an apply says of each field is merged into managedFields, in quadratic time. The scope here has no field
// manager: an apply that came so far would panic.
func TestAnApplyOfTooManyFieldsIsRefusedBeforeTheWork(t *testing.T) {
	keys, finalizers := make([]string, maxAppliedFields+1), make([]string, maxAppliedFields+1)
	for i := range keys {
		keys[i], finalizers[i] = fmt.Sprintf("k%d: v", i), fmt.Sprintf("example.com/f%d", i)
	}
	resource := registry.Pods()
	s := &handlers.Scope{Storage: registry.New(registry.Config{Resource: resource}), Resource: resource,
		Kind: resource.GroupVersionKind()}
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
	w := a.do("PATCH", strings.Replace(podsPath, "pods", "configmaps", 1)+"/c?fieldManager=x", strings.Replace(many,
		`{k0`, `{"k0`, 1)+`"}}`, "Content-Type", "application/apply-patch+yaml")
	assert.Equal(t, w.Code, http.StatusCreated, "a thousand keys: got %d %.200s", w.Code, w.Body)
}
