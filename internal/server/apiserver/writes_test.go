package apiserver

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	handlers "listwatch/chapters/08-handlers"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
)

// verbs maps each verb of a subresource to its method and the Content-Types of its bodies.
var verbs = map[string]struct {
	method       string
	contentTypes []string
}{
	"get": {"GET", []string{""}}, "update": {"PUT", []string{"application/json"}},
	"patch": {"PATCH", patchTypes}, "create": {"POST", []string{"application/json"}},
}

// pathOf returns the path of the named object, or of its subresource.
func pathOf(s *handlers.Scope, name string) string {
	return strings.NewReplacer("{namespace}", "default", "{name}", name).Replace(s.ItemPath())
}

// TestASubresourceOfWhatDoesNotExistIsNotFound expects a 404 for each verb: no write may create the object.
func TestASubresourceOfWhatDoesNotExistIsNotFound(t *testing.T) {
	a := newAPI(t)
	tried := 0
	for _, s := range a.Handler.(*handlers.Server).Scopes() {
		if s.Subresource == "" {
			continue
		}
		for _, verb := range s.Verbs {
			for _, contentType := range verbs[verb].contentTypes {
				body := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"ghost"}}`,
					s.Kind.GroupVersion(), s.Kind.Kind)
				switch {
				case contentType == "application/json-patch+json":
					body = `[]`
				case s.Subresource == "binding":
					body = `{"metadata":{"name":"ghost"},"target":{"name":"n1"}}`
				}
				w := a.Do(verbs[verb].method, pathOf(s, "ghost")+"?fieldManager=m", body, "Content-Type", contentType)
				status := wantStatus(t, w, 404, metav1.StatusReasonNotFound)
				tried++
				assert.True(t, status.Details != nil && status.Details.Name == "ghost", "%s %s/%s as %s: got %+v", verb,
					s.Resource.Name, s.Subresource, contentType, status)
			}
		}
	}
	assert.True(t, tried > 50, "tried only %d", tried)
}

// TestAUIDIsAPrecondition: a write with the uid of another object must fail, and must not create an object.
func TestAUIDIsAPrecondition(t *testing.T) {
	const leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases/"
	body := func(contentType, name, uid string) string {
		if contentType == "application/json-patch+json" {
			return fmt.Sprintf(`[{"op":"replace","path":"/metadata/uid","value":%q}]`, uid)
		}
		return fmt.Sprintf(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":%q,"uid":%q}}`,
			name, uid)
	}
	a := newAPI(t)
	live := a.Do("PUT", leases+"live", body("", "live", ""))
	require.Equal(t, 201, live.Code, "got %s", live.Body)
	const put, gone = "Precondition failed: UID in precondition: 1234",
		"uid mismatch: the provided object specified uid 1234, and no existing object was found"
	for _, c := range []struct {
		name, method string
		contentTypes []string
		code         int
		said         string
	}{
		{"ghost", "PUT", []string{"application/json"}, 409, put},
		{"live", "PUT", []string{"application/json"}, 409, put},
		{"ghost", "PATCH", []string{applyType}, 409, gone},
		{"ghost", "PATCH", patchTypes[:3], 404, "not found"},
		{"live", "PATCH", patchTypes, 422, "field is immutable"},
	} {
		for _, contentType := range c.contentTypes {
			for _, dry := range []string{"", "&dryRun=All"} {
				w := a.Do(c.method, leases+c.name+"?fieldManager=m"+dry, body(contentType, c.name, "1234"),
					"Content-Type", contentType)
				assert.True(t, w.Code == c.code && strings.Contains(w.Body.String(), c.said),
					"%s of %s as %s%s: got %d %s", c.method, c.name, contentType, dry, w.Code, w.Body)
			}
		}
	}
	wantStatus(t, a.Do("GET", leases+"ghost", ""), 404, metav1.StatusReasonNotFound)
}

// TestEqualOwnerReferencesAreKeptOnce also expects a warning, and a 400 for an apply with equal owner references.
func TestEqualOwnerReferencesAreKeptOnce(t *testing.T) {
	const ref = `{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"u1"}`
	other := strings.Replace(ref, `"x"`, `"y"`, 1) // a different reference, although the uid is the same
	refs := "[" + strings.Join([]string{ref, other, ref, ref}, ",") + "]"
	body := fmt.Sprintf(`{"metadata":{"ownerReferences":%s}}`, refs)
	pod := strings.Replace(podA, `"name":"a"`, `"name":"a","ownerReferences":`+refs, 1)
	for name, c := range map[string]struct{ method, body, contentType string }{
		"POST":  {"POST", pod, "application/json"},
		"PUT":   {"PUT", pod, "application/json"},
		"merge": {"PATCH", body, "application/merge-patch+json"},
		"JSON": {"PATCH", fmt.Sprintf(`[{"op":"add","path":"/metadata/ownerReferences","value":%s}]`, refs),
			"application/json-patch+json"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			path := podsPath
			if c.method != "POST" {
				a.Create(podA)
				path += "/a"
			}
			w := a.Do(c.method, path, c.body, "Content-Type", c.contentType)
			assert.Equal(t, 2, len(into[corev1.Pod](t, w.Body).OwnerReferences), "owner references")
			warning := w.Header().Get("Warning")
			assert.True(t, len(w.Header()["Warning"]) == 1 &&
				strings.Contains(warning, "ownerReferences contains duplicate entries") &&
				strings.Contains(warning, "duplicate UID(s) observed: u1, u1"),
				"warnings: got %q", w.Header()["Warning"])
		})
	}
	a := newAPI(t)
	wantStatus(t, a.Do("PATCH", podsPath+"/a?fieldManager=m", pod, "Content-Type", applyType), 400,
		metav1.StatusReasonBadRequest)
}

// oddSpec is a pod's spec in spellings that differ from the server's.
const oddSpec = `{"schedulingGates":[{"name":"g"}],"containers":[{"name":"c","image":"i","resources":
	{"requests":{"cpu":"0.5","memory":"1024Mi"}},"env":[{"name":"E","valueFrom":
	{"fieldRef":{"fieldPath":"metadata.name"}}}]}]}`

const oddTemplate = `,"spec":{"selector":{"matchLabels":{"x":"y"}},"template":
	{"metadata":{"creationTimestamp":null,"labels":{"x":"y"}},"spec":` + oddSpec + `}},"status":{}`

// oddly contains, by path, the fields to apply. The server stores them in another form: with defaults, or normalized.
// A path without an entry gets an empty status, if its kind has one.
var oddly = map[string]string{
	"pods":             `,"spec":` + oddSpec,
	"pods/status":      `,"status":{"phase":"Running","conditions":[]}`,
	"deployments.apps": oddTemplate, "replicasets.apps": oddTemplate, "statefulsets.apps": oddTemplate,
	"nodes":                  `,"spec":{"taints":[]},"status":{"capacity":{"memory":"1024Mi"}}`,
	"nodes/status":           `,"status":{"capacity":{"cpu":"0.5","memory":"1024Mi"},"allocatable":{}}`,
	"events":                 `,"involvedObject":{"namespace":"default"},"reason":"r"`,
	"services":               `,"spec":{"ports":[{"port":80}],"selector":{}},"status":{"loadBalancer":{}}`,
	"persistentvolumes":      `,"spec":{"capacity":{"storage":"1024Mi"},"hostPath":{"path":"/p"}},"status":{}`,
	"persistentvolumeclaims": `,"spec":{"resources":{"requests":{"storage":"1024Mi"}}},"status":{}`,
	"configmaps":             `,"data":{},"immutable":null`,
	"secrets":                `,"stringData":{"a":"b"}`,
}

// TestAnApplyThatChangesNothingWritesNothing sends the same apply three times for each kind and each status: the
// version must not change. The applies are two seconds apart, because the times of managed fields have whole seconds.
func TestAnApplyThatChangesNothingWritesNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		a := newAPI(t)
		for i, s := range a.Handler.(*handlers.Server).Scopes() {
			if !slices.Contains(s.Verbs, "patch") || s.Subresource == "scale" {
				continue
			}
			path := strings.Trim(s.Resource.GroupResource().String()+"/"+s.Subresource, "/")
			name, wishes := "a", oddly[path]
			switch {
			case path == "events.events.k8s.io": // shares the storage of events
				name = "b"
			case wishes == "" && s.Resource.StatusStrategy != nil:
				wishes = `,"status":{}`
			}
			body := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"labels":{"n":"%d"},`+
				`"creationTimestamp":null}%s}`, s.Kind.GroupVersion(), s.Kind.Kind, name, i, wishes)
			var versions []string
			for range 3 {
				w := a.Do("PATCH", pathOf(s, name)+"?fieldManager=m&force=true", body, "Content-Type", applyType)
				require.True(t, w.Code/100 == 2, "%s: got %d %s", path, w.Code, w.Body)
				versions = append(versions, into[metav1.PartialObjectMetadata](t, w.Body).ResourceVersion)
				time.Sleep(2 * time.Second)
			}
			assert.True(t, versions[1] == versions[0] && versions[2] == versions[0], "%s: got versions %v", path,
				versions)
		}
	})
}

func TestAnEvictionIsADeletion(t *testing.T) {
	a := newAPI(t)
	a.Create(podA)
	uid := string(into[corev1.Pod](t, a.Do("GET", podsPath+"/a", "").Body).UID)
	evict := func(query, options string) int {
		return a.Do("POST", podsPath+"/a/eviction"+query, fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction",`+
			`"metadata":{"name":"a"},"deleteOptions":%s}`, options)).Code
	}
	assert.Equal(t, 409, evict("", `{"preconditions":{"uid":"other"}}`), "another pod")
	assert.Equal(t, 422, evict("", `{"propagationPolicy":"x"}`), "options of a deletion are checked")
	assert.Equal(t, 201, evict("?dryRun=All", "{}"), "dry")
	require.Equal(t, http.StatusOK, a.Do("GET", podsPath+"/a", "").Code, "after a dry run")
	assert.Equal(t, 201, evict("", fmt.Sprintf(`{"preconditions":{"uid":%q}}`, uid)), "the pod")
	assert.Equal(t, http.StatusNotFound, a.Do("GET", podsPath+"/a", "").Code, "the pod is still there")
}

func TestABindingOfTheOlderPathNamesItsPodItself(t *testing.T) {
	a := newAPI(t)
	a.Create(podA)
	bind := func(node string) (int, *metav1.Status) {
		w := a.Do("POST", "/api/v1/namespaces/default/bindings", fmt.Sprintf(`{"apiVersion":"v1","kind":"Binding",`+
			`"metadata":{"name":"a"},"target":{"kind":"Node","name":%q}}`, node))
		status := into[metav1.Status](t, w.Body)
		return w.Code, &status
	}
	code, _ := bind("n1")
	require.Equal(t, 201, code)
	code, status := bind("n2")
	assert.True(t, code == 409 && status.Reason == metav1.StatusReasonConflict, "bound twice: %d %v", code, status)
}

// TestTheScaleOfADeploymentIsItsSize reads, replaces and patches the scale; it requires that an old version and a
// negative size are refused.
func TestTheScaleOfADeploymentIsItsSize(t *testing.T) {
	a := newAPI(t)
	const deployments = "/apis/apps/v1/namespaces/default/deployments"
	w := a.Do("POST", deployments, `{"metadata":{"name":"web"},`+
		`"spec":{"replicas":3,"selector":{"matchLabels":{"a":"b"}},`+
		`"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`)
	assert.Equal(t, 201, w.Code, w.Body)
	scale := func(method, body string, headers ...string) (int, autoscalingv1.Scale) {
		w := a.Do(method, deployments+"/web/scale", body, headers...)
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
	assert.Equal(t, 415, a.Do("PATCH", deployments+"/web/scale?fieldManager=m", `{"spec":{"replicas":2}}`,
		"Content-Type",
		applyType).Code, "apply")
	assert.Equal(t, 404, a.Do("GET", deployments+"/other/scale", "").Code, "of what is not there")
	assert.Equal(t, 404, a.Do("PATCH", deployments+"/other/scale", `{"spec":{"replicas":2}}`, "Content-Type",
		"application/merge-patch+json").Code, "PATCH of what is not there")
}
