package apiserver

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	registry "listwatch/chapters/07-registry"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

const applyType = "application/apply-patch+yaml"

// apply sends a server-side apply of pod a. wishes continues the pod's YAML inside the braces of metadata.
func (a *api) apply(manager, query, wishes string) *httptest.ResponseRecorder {
	a.T.Helper()
	return a.Do("PATCH", podsPath+"/a?fieldManager="+manager+query, "apiVersion: v1\nkind: Pod\nmetadata: {name: a"+
		wishes, "Content-Type", applyType)
}

// applied requires that the server answers the apply with code, and returns the pod.
func (a *api) applied(code int, manager, query, wishes string) corev1.Pod {
	a.T.Helper()
	w := a.apply(manager, query, wishes)
	require.Equal(a.T, code, w.Code, "apply by %s: got %d %s, want %d", manager, w.Code, w.Body, code)
	return into[corev1.Pod](a.T, w.Body)
}

// managers returns a pod's managers, with their operations and subresources.
func managers(pod corev1.Pod) []string {
	var names []string
	for _, entry := range pod.ManagedFields {
		name := entry.Manager + " " + string(entry.Operation)
		if entry.Subresource != "" {
			name += " " + entry.Subresource
		}
		names = append(names, name)
	}
	return names
}

const oneContainer = ", labels: {app: web}}\nspec: {containers: [{name: c, image: 'i:1'}]}\n"

func TestApplyCreatesWhatIsNotThere(t *testing.T) {
	a := newAPI(t)
	pod := a.applied(201, "one", "", oneContainer)
	assert.True(t, pod.Spec.Containers[0].Image == "i:1" && pod.Spec.RestartPolicy == corev1.RestartPolicyAlways &&
		pod.UID != "", "got %+v", pod)
	assert.EqualSlices(t, []string{"one Apply"}, managers(pod), "managers")
	again := a.applied(200, "one", "", oneContainer)
	assert.Equal(t, pod.ResourceVersion, again.ResourceVersion, "version after the same wishes again")
}

func TestADryApplyChangesNothing(t *testing.T) {
	a := newAPI(t)
	a.applied(201, "one", "&dryRun=All", oneContainer)
	wantStatus(t, a.Do("GET", podsPath+"/a", ""), 404, metav1.StatusReasonNotFound)
}

func TestTwoManagersOfOneFieldConflictUnlessForced(t *testing.T) {
	a := newAPI(t)
	a.applied(201, "one", "", oneContainer)
	const other = ", labels: {app: db}}\n"
	status := wantStatus(t, a.apply("two", "", other), 409, metav1.StatusReasonConflict)
	assert.True(t, len(status.Details.Causes) == 1 &&
		status.Details.Causes[0].Type == metav1.CauseTypeFieldManagerConflict &&
		status.Details.Causes[0].Field == ".metadata.labels.app" &&
		strings.Contains(status.Details.Causes[0].Message, `"one"`), "causes: got %+v", status.Details.Causes)
	assert.Equal(t, "db", a.applied(200, "two", "&force=true", other).Labels["app"], "forced")
	wantStatus(t, a.apply("one", "", oneContainer), 409, metav1.StatusReasonConflict)
	// A manager that agrees causes no conflict.
	a.applied(200, "three", "", other)
}

func TestWhatAManagerNoLongerWantsGoesAway(t *testing.T) {
	a := newAPI(t)
	a.applied(201, "one", "", ", labels: {app: web, tier: front}}\nspec: {containers: [{name: c, image: 'i:1'}]}\n")
	a.applied(200, "two", "", ", labels: {tier: front, by: two}}\n")
	pod := a.applied(200, "one", "", "}\nspec: {containers: [{name: c, image: 'i:1'}]}\n")
	assert.NoDiff(t, map[string]string{"tier": "front", "by": "two"}, pod.Labels, "no other manager wanted app")
}

func TestListsWithKeysAreMergedByThem(t *testing.T) {
	a := newAPI(t)
	a.applied(201, "one", "", "}\nspec: {containers: [{name: c, image: 'i:1', env: [{name: A, value: '1'}]}]}\n")
	// The containers of a pod are immutable, so the test merges another list with keys, owner references.
	a.applied(200, "two", "", ", ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: x, uid: u1}]}\n")
	pod := a.applied(200, "three", "", ", ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: z, uid: u2}]}\n")
	assert.Equal(t, 2, len(pod.OwnerReferences), "owners")
}

func TestEveryWriteIsNoted(t *testing.T) {
	a := newAPI(t)
	w := a.Do("POST", podsPath, podA, "User-Agent", "kubectl/v1.37 (linux)")
	require.True(t, w.Code == 201, w.Body)
	a.Do("PATCH", podsPath+"/a?fieldManager=labeller", `{"metadata":{"labels":{"x":"1"}}}`, "Content-Type",
		"application/merge-patch+json")
	a.Do("PATCH", podsPath+"/a/status", `{"status":{"phase":"Running"}}`, "Content-Type",
		"application/merge-patch+json", "User-Agent", "kubelet")
	// A write that changes nothing gives its manager no field.
	a.Do("PATCH", podsPath+"/a?fieldManager=idler", `{"metadata":{"labels":{"x":"1"}}}`, "Content-Type",
		"application/merge-patch+json")
	pod := into[corev1.Pod](t, a.Do("GET", podsPath+"/a", "").Body)
	got, want := managers(pod), []string{"kubectl Update", "labeller Update", "kubelet Update status"}
	assert.True(t, sameElements(got, want), "got %v, want %v", got, want)
	// Any write that changes a field makes the writer the field's owner, and an apply by another manager conflicts.
	status := wantStatus(t, a.apply("one", "", ", labels: {x: '2'}}\n"), 409, metav1.StatusReasonConflict)
	assert.True(t, len(status.Details.Causes) == 1 && strings.Contains(status.Details.Causes[0].Message, `"labeller"`),
		"causes: got %+v", status.Details.Causes)
	w = a.Do("PUT", podsPath+"/a?fieldManager=putter", strings.Replace(podA, "web", "db", 1))
	pod = into[corev1.Pod](t, w.Body)
	assert.True(t, slices.Contains(managers(pod), "putter Update"), "after a PUT: got %v", managers(pod))
}

// TestAWriteThatCannotBeNotedKeepsTheNotesOfOthers puts a list element without its key: managedFields must not change.
func TestAWriteThatCannotBeNotedKeepsTheNotesOfOthers(t *testing.T) {
	a := newAPI(t)
	const path = "/api/v1/namespaces/default/serviceaccounts"
	const account = `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"a"},"secrets":[{"kind":"x"}]}`
	a.Do("POST", path+"?fieldManager=one", strings.Replace(account, "kind\":\"x", "name\":\"x", 1))
	w := a.Do("PUT", path+"/a?fieldManager=two", account)
	got := into[corev1.ServiceAccount](t, w.Body)
	assert.True(t, w.Code == 200 && len(got.Secrets) == 1 && got.Secrets[0].Name == "" && len(got.ManagedFields) == 1 &&
		got.ManagedFields[0].Manager == "one", "got %d %+v", w.Code, got)
}

func sameElements(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

func TestAppliesThatMakeNoSenseAreRefused(t *testing.T) {
	a := newAPI(t)
	a.applied(201, "one", "", oneContainer)
	pod := func(rest string) string { return "apiVersion: v1\nkind: Pod\n" + rest }
	for name, c := range map[string]struct {
		query, body string
		code        int
		reason      metav1.StatusReason
	}{
		"no manager":      {"?x=", pod("metadata: {name: a}"), 422, metav1.StatusReasonInvalid},
		"empty":           {"", "", 400, metav1.StatusReasonBadRequest},
		"not YAML":        {"", "{", 400, metav1.StatusReasonBadRequest},
		"a list":          {"", "[1]", 400, metav1.StatusReasonBadRequest},
		"no kind":         {"", "metadata: {name: a}", 400, metav1.StatusReasonBadRequest},
		"another kind":    {"", "apiVersion: v1\nkind: Node\nmetadata: {name: a}", 400, metav1.StatusReasonBadRequest},
		"another version": {"", "apiVersion: v2\nkind: Pod\nmetadata: {name: a}", 400, metav1.StatusReasonBadRequest},
		"unknown field":   {"", pod("metadata: {name: a}\nspec: {colour: red}"), 400, metav1.StatusReasonBadRequest},
		"wrong type":      {"", pod("metadata: {name: a}\nspec: {containers: 5}"), 400, metav1.StatusReasonBadRequest},
		"managed fields": {"", pod("metadata: {name: a, managedFields: [{manager: x}]}"), 400,
			metav1.StatusReasonBadRequest},
		"another name":      {"", pod("metadata: {name: b}"), 400, metav1.StatusReasonBadRequest},
		"another namespace": {"", pod("metadata: {name: a, namespace: x}"), 400, metav1.StatusReasonBadRequest},
		"doubled, strict": {"&fieldValidation=Strict", pod("metadata: {name: a, name: a}"), 400,
			metav1.StatusReasonBadRequest},
		"an old version": {"", pod("metadata: {name: a, resourceVersion: '1'}"), 409, metav1.StatusReasonConflict},
		"an immutable field": {"&force=true", pod("metadata: {name: a}\nspec: {restartPolicy: Never}"), 422,
			metav1.StatusReasonInvalid},
		"an invalid value": {"", pod("metadata: {name: a, labels: {'!': x}}"), 422, metav1.StatusReasonInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			query := c.query
			if !strings.HasPrefix(query, "?") {
				query = "?fieldManager=two" + query
			}
			wantStatus(t, a.Do("PATCH", podsPath+"/a"+query, c.body, "Content-Type", applyType), c.code, c.reason)
		})
	}
	// Only an apply may use force.
	w := a.Do("PATCH", podsPath+"/a?force=true", `{}`, "Content-Type", "application/merge-patch+json")
	wantStatus(t, w, 422, metav1.StatusReasonInvalid)
}

func TestTheStatusIsAppliedThroughItsOwnPath(t *testing.T) {
	a := newAPI(t)
	a.applied(201, "one", "", oneContainer)
	const running = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nstatus: {phase: Running}\n"
	w := a.Do("PATCH", podsPath+"/a/status?fieldManager=kubelet", running, "Content-Type", applyType)
	if pod := into[corev1.Pod](t, w.Body); w.Code != 200 || pod.Status.Phase != corev1.PodRunning ||
		!sameElements(managers(pod), []string{"one Apply", "kubelet Apply status"}) {
		t.Errorf("got %d %v %+v", w.Code, managers(pod), pod.Status)
	}
	// An apply of the status through the object's path has no effect, and makes no manager the status's owner.
	pod := a.applied(200, "one", "", oneContainer+"status: {phase: Failed}\n")
	assert.True(t, pod.Status.Phase == corev1.PodRunning &&
		(!strings.Contains(string(pod.ManagedFields[0].FieldsV1.GetRawBytes()), "phase") ||
			pod.ManagedFields[0].Subresource != ""),
		"got %s, %s", pod.Status.Phase, pod.ManagedFields[0].FieldsV1.GetRawBytes())
}

// TestEveryFieldOfEveryKindHasAType fills all fields: one without a type would prevent managed fields of its object.
func TestEveryFieldOfEveryKindHasAType(t *testing.T) {
	for _, resource := range registry.Resources() {
		obj := resource.NewFunc()
		randfill.NewWithSeed(1).NilChance(0).NumElements(1, 1).MaxDepth(12).Funcs(
			func(q *apiresource.Quantity, _ randfill.Continue) { *q = apiresource.MustParse("1") },
			func(v *metav1.FieldsV1, _ randfill.Continue) { v.SetRawBytes([]byte("{}")) },
			func(v *runtime.RawExtension, _ randfill.Continue) { v.Raw = []byte("{}") },
			func(v *intstr.IntOrString, _ randfill.Continue) { *v = intstr.FromInt32(1) },
			func(v *[]metav1.ManagedFieldsEntry, _ randfill.Continue) { *v = nil },
		).Fill(obj)
		obj.GetObjectKind().SetGroupVersionKind(resource.GroupVersion.WithKind(resource.Kind))
		_, err := typeConverter().ObjectToTyped(obj, typed.AllowDuplicates)
		assert.True(t, err == nil,
			"%s: %v; in internal/check/compat run go test ./kubectl -run TestFieldTypes -update", resource.Name, err)
	}
}
