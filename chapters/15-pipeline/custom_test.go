package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3/kubernetes"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	registry "listwatch/chapters/07-registry"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/bubble"
	"listwatch/internal/check/probetest"
	"listwatch/internal/check/require"
	"listwatch/internal/kube/resources"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/routine"
	"listwatch/internal/server/mvcc"
)

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// definitionOf returns a definition of a kind in group example.com.
func definitionOf(plural, scope string, versions ...string) string {
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
		"metadata":{"name":"%[1]s.example.com"},"spec":{"group":"example.com","scope":%[2]q,"names":{"plural":%[1]q,
		"kind":%[3]q,"shortNames":["%[4]s"]},"versions":[%[5]s]}}`, plural, scope, strings.ToUpper(plural[:1])+
		plural[1:len(plural)-1], plural[:2], strings.Join(versions, ","))
}

func version(name string, storage bool, schema, more string) string {
	return fmt.Sprintf(`{"name":%q,"served":true,"storage":%t,"schema":{"openAPIV3Schema":%s}%s}`, name, storage, schema,
		more)
}

const (
	anything     = `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`
	widgetSchema = `{"type":"object","properties":{
		"spec":{"type":"object","required":["size"],"properties":{
			"size":{"type":"integer","minimum":1,"maximum":10},
			"color":{"type":"string","enum":["red","blue"],"default":"red"},
			"port":{"x-kubernetes-int-or-string":true},"tags":{"type":"array","items":{"type":"string"},
				"x-kubernetes-list-type":"set"}}},
		"status":{"type":"object","properties":{"ready":{"type":"boolean"}}}}}`
	widgetParts = `,"subresources":{"status":{}},"additionalPrinterColumns":[
		{"name":"Size","type":"integer","jsonPath":".spec.size"},
		{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}]`
)

var (
	widgetsV1   = definitionOf("widgets", "Namespaced", version("v1", true, anything, ""))
	widgetsBoth = definitionOf("widgets", "Namespaced", version("v1", true, widgetSchema, widgetParts),
		version("v1beta1", false, widgetSchema, ""))
)

// widgets returns the rows of a definition.
func widgets(t *testing.T, text string) []*registry.Resource {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, json.Unmarshal([]byte(text), definition))
	resources.DefaultDefinition(definition)
	return require.Value(registry.CustomResources(definition))(t)
}

// define creates or replaces a definition, and returns when the server has seen it.
func (k *kindTest) define(text string) {
	k.t.Helper()
	at := *k
	at.path = definitionsPath
	at.send("POST", "", "application/json", text, http.StatusCreated)
	synctest.Wait()
}

// at returns a test of another path.
func (k *kindTest) at(path string) *kindTest {
	other := *k
	other.path = path
	return &other
}

const widgetsPath = "/apis/example.com/v1/namespaces/default/widgets"

// withWidgets runs body with a server that serves widgets.
func withWidgets(t *testing.T, body func(k *kindTest)) {
	bubble.Test(t, func(t *testing.T) {
		k := &kindTest{t: t, path: widgetsPath, resource: widgets(t, widgetsBoth)[0]}
		k.serve(mvcc.New(clock.RealClock{}), func() {
			k.define(widgetsBoth)
			body(k)
		})
	})
}

func (k *kindTest) widget(name, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":%q},"spec":{%s}}`, name, spec)
}

// conditions returns the conditions of the definition of widgets.
func (k *kindTest) conditions() string {
	k.t.Helper()
	obj := k.at(definitionsPath).object("GET", "/widgets.example.com", "", "", 200)
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	var all []string
	for _, each := range conditions {
		all = append(all, each.(map[string]any)["type"].(string)+"="+each.(map[string]any)["status"].(string))
	}
	return strings.Join(all, " ")
}

func TestACustomResourceIsCheckedByItsSchema(t *testing.T) {
	withWidgets(t, func(k *kindTest) {
		assert.Equal(t, k.conditions(), "NamesAccepted=True Established=True", "conditions")
		made := k.object("POST", "", "application/json", k.widget("a", `"size":3,"bad":1,"tags":["x"]`), 201)
		spec, _, _ := unstructured.NestedMap(made.Object, "spec")
		assert.NoDiff(t, spec, map[string]any{"size": int64(3), "color": "red", "tags": []any{"x"}}, "spec")
		assert.Equal(t, made.GetGeneration(), int64(1), "generation")
		for body, want := range map[string]string{
			`"size":11`:                      "spec.size in body should be less than or equal to 10",
			`"size":"x"`:                     "spec.size in body must be of type integer",
			`"color":"red"`:                  "spec.size: Required value",
			`"size":1,"color":"green"`:       `spec.color: Unsupported value: "green": supported values: "red", "blue"`,
			`"size":1,"port":true`:           "spec.port",
			`"size":1,"tags":["x","x"]`:      `spec.tags[1]: Duplicate value: "x"`,
			`"size":null`:                    "spec.size: Required value",
			`"size":1,"tags":[1],"port":"p"`: "spec.tags[0] in body must be of type string",
		} {
			got := k.send("POST", "", "application/json", k.widget("b", body), 422).Body.String()
			assert.True(t, strings.Contains(got, strings.ReplaceAll(want, `"`, `\"`)), "%s: got %s, want %s", body, got,
				want)
		}
		unknown := k.widget("b", `"size":1,"bad":1`)
		strict := k.send("POST", "?fieldValidation=Strict", "application/json", unknown, 400).Body.String()
		assert.True(t, strings.Contains(strict, `Widget in version \"v1\" cannot be handled as a Widget: `+
			`strict decoding error: unknown field \"spec.bad\"`), "strict: got %s", strict)
		warned := k.send("POST", "?dryRun=All", "application/json", unknown, 201).Header().Get("Warning")
		assert.True(t, strings.Contains(warned, `unknown field \"spec.bad\"`), "warning: got %s", warned)
		ignored := k.send("POST", "?dryRun=All&fieldValidation=Ignore", "application/json", unknown, 201).Header()
		assert.Equal(t, ignored.Get("Warning"), "", "warning of what is ignored")
	})
}

func TestTheStatusOfACustomResourceHasAPathOfItsOwn(t *testing.T) {
	withWidgets(t, func(k *kindTest) {
		k.send("POST", "", "application/json", k.widget("a", `"size":3`), 201)
		const both = `{"spec":{"size":4},"status":{"ready":true}}`
		obj := k.object("PATCH", "/a/status", "application/merge-patch+json", both, 200)
		size, _, _ := unstructured.NestedInt64(obj.Object, "spec", "size")
		ready, _, _ := unstructured.NestedBool(obj.Object, "status", "ready")
		assert.True(t, size == 3 && ready && obj.GetGeneration() == 1, "through status: got %v", obj)
		const ignored = `{"spec":{"size":4},"status":{"ready":false}}`
		obj = k.object("PATCH", "/a", "application/merge-patch+json", ignored, 200)
		size, _, _ = unstructured.NestedInt64(obj.Object, "spec", "size")
		ready, _, _ = unstructured.NestedBool(obj.Object, "status", "ready")
		assert.True(t, size == 4 && ready && obj.GetGeneration() == 2, "through the object: got %v", obj)
		apply := k.widget("a", `"size":5`)
		first := k.object("PATCH", "/a?fieldManager=m&force=true", "application/apply-patch+yaml", apply, 200)
		second := k.object("PATCH", "/a?fieldManager=m&force=true", "application/apply-patch+yaml", apply, 200)
		assert.Equal(t, second.GetResourceVersion(), first.GetResourceVersion(), "the version after the same apply")
		k.send("PATCH", "/a?fieldManager=m", "application/apply-patch+yaml", k.widget("a", `"bad":5`), 400)
	})
}

func TestVersionsAreTheSameObjects(t *testing.T) {
	withWidgets(t, func(k *kindTest) {
		k.send("POST", "", "application/json", k.widget("a", `"size":3`), 201)
		beta := k.at("/apis/example.com/v1beta1/namespaces/default/widgets")
		obj := beta.object("GET", "/a", "", "", 200)
		assert.Equal(t, obj.GetAPIVersion(), "example.com/v1beta1", "apiVersion")
		written, err := obj.MarshalJSON()
		require.NoError(t, err)
		beta.send("PUT", "/a", "application/json", strings.Replace(string(written), `"size":3`, `"size":4`, 1), 200)
		obj = k.object("GET", "/a", "", "", 200)
		size, _, _ := unstructured.NestedInt64(obj.Object, "spec", "size")
		assert.True(t, obj.GetAPIVersion() == "example.com/v1" && size == 4, "after a write in v1beta1: got %v", obj)
		assert.Equal(t, k.watch("0")+", "+beta.watch("0"), "ADDED a, ADDED a", "both watches")
	})
}

func TestCustomResourcesAreDiscovered(t *testing.T) {
	withWidgets(t, func(k *kindTest) {
		root := k.at("")
		for path, want := range map[string]string{
			"/apis":                           `"preferredVersion":{"groupVersion":"example.com/v1","version":"v1"}`,
			"/apis/example.com":               `{"groupVersion":"example.com/v1beta1","version":"v1beta1"}`,
			"/apis/example.com/v1":            `"name":"widgets/status"`,
			"/openapi/v3":                     `"apis/example.com/v1":{"serverRelativeURL":"/openapi/v3/apis/example.com/v1?hash=`,
			definitionsPath:                   `"acceptedNames":{"plural":"widgets","singular":"widget"`,
			"/openapi/v3/apis/example.com/v1": `"com.example.v1.Widget":{"type":"object","properties":{`,
		} {
			var text strings.Builder
			for _, r := range root.send("GET", path, "", "", 200).Body.String() {
				if r != ' ' && r != '\n' {
					text.WriteRune(r)
				}
			}
			assert.True(t, strings.Contains(text.String(), want), "%s: got %.2000s, want %s", path, text.String(), want)
		}
		const aggregated = "accept application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
		all := root.send("GET", "/apis", aggregated, "", 200).Body.String()
		assert.True(t, strings.Contains(all, `"singularResource": "widget"`), "in one piece: got %s", all)
		k.send("POST", "", "application/json", k.widget("a", `"size":3`), 201)
		table := k.object("GET", "", "accept application/json;as=Table;v=v1;g=meta.k8s.io", "", 200)
		rows, _, _ := unstructured.NestedSlice(table.Object, "rows")
		assert.NoDiff(t, rows[0].(map[string]any)["cells"], any([]any{"a", int64(3), "0s"}), "cells")
	})
}

// events follows the widgets. The returned function says what has been seen, and whether the stream has ended.
func (k *kindTest) events() func() string {
	k.t.Helper()
	client := k.w.client.WithAPIPath("/apis/example.com/v1").Untyped()
	stream, err := client.ListWatch("widgets", "default", nil).Watch(k.t.Context(), metav1.ListOptions{})
	require.NoError(k.t, err)
	var mu sync.Mutex
	var seen []string
	note := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, text)
	}
	new(routine.Group).Go(k.t.Context(), "test.events", func(context.Context) {
		for event := range stream.ResultChan() {
			note(string(event.Type) + " " + event.Object.(metav1.Object).GetName())
		}
		note("end")
	})
	return func() string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(seen, ", ")
	}
}

// pictured returns what the page shows of widgets.
func (k *kindTest) pictured() *fold.Resource {
	k.t.Helper()
	state := fold.New()
	state.Apply(probetest.Records(k.w.log))
	return state.Resources["widgets.example.com"]
}

// TestAChangeOfTheDefinitionEndsWatches: what is seen afterwards follows from the new schema.
func TestAChangeOfTheDefinitionEndsWatches(t *testing.T) {
	withWidgets(t, func(k *kindTest) {
		k.send("POST", "", "application/json", k.widget("a", `"size":3`), 201)
		events, caches := k.events(), len(k.w.cached())
		k.at(definitionsPath).send("PATCH", "/widgets.example.com", "application/merge-patch+json",
			`{"metadata":{"labels":{"l":"1"}}}`, 200)
		assert.Equal(t, events(), "ADDED a", "after a change of metadata")
		k.at(definitionsPath).send("PATCH", "/widgets.example.com", "application/json-patch+json", `[{"op":"replace",
			"path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/color/default","value":"blue"},
			{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/new",
			"value":{"type":"integer","default":7}}]`, 200)
		assert.Equal(t, events(), "ADDED a, end", "after a change of the schema")
		obj := k.object("GET", "/a", "", "", 200)
		spec, _, _ := unstructured.NestedMap(obj.Object, "spec")
		assert.NoDiff(t, spec, map[string]any{"size": int64(3), "color": "red", "new": int64(7)}, "spec")
		again := k.events()
		assert.Equal(t, again(), "ADDED a", "a watch of the new cache")
		assert.Equal(t, len(k.w.cached()), caches, "caches")
		assert.Equal(t, k.conditions(), "NamesAccepted=True Established=True", "conditions")
		k.at(definitionsPath).send("PATCH", "/widgets.example.com", "application/merge-patch+json",
			`{"spec":{"scope":"Cluster"}}`, 422)
	})
}

// TestADeletedDefinitionTakesItsObjectsAlong, and waits for those that a finalizer holds.
func TestADeletedDefinitionTakesItsObjectsAlong(t *testing.T) {
	withWidgets(t, func(k *kindTest) {
		k.send("POST", "", "application/json", k.widget("a", `"size":3`), 201)
		held := strings.Replace(k.widget("b", `"size":3`), `"name":"b"`, `"name":"b","finalizers":["x/y"]`, 1)
		k.send("POST", "", "application/json", held, 201)
		events := k.events()
		pictured := k.pictured()
		assert.True(t, !pictured.Stopped() && pictured.Ring.Capacity > 0 && pictured.Shelves["store/cacher"].N == 2,
			"got %+v", pictured)
		k.at(definitionsPath).send("DELETE", "/widgets.example.com", "", "", 200)
		assert.Equal(t, events(), "ADDED a, ADDED b, DELETED a, MODIFIED b", "while b is held")
		assert.Equal(t, k.conditions(), "NamesAccepted=True Established=True Terminating=True", "conditions")
		k.send("POST", "", "application/json", k.widget("c", `"size":3`), 405)
		k.send("PATCH", "/c?fieldManager=m", "application/apply-patch+yaml", k.widget("c", `"size":3`), 405)
		k.send("PATCH", "/b", "application/merge-patch+json", `{"metadata":{"finalizers":null}}`, 200)
		time.Sleep(2 * definitionsRetry)
		assert.Equal(t, events(), "ADDED a, ADDED b, DELETED a, MODIFIED b, DELETED b, end", "after b is let go")
		k.send("GET", "", "", "", 404)
		k.at(definitionsPath).send("GET", "/widgets.example.com", "", "", 404)
		assert.True(t, !slices.Contains(k.w.cached(), "widgets.example.com"), "got caches of %v", k.w.cached())
		gone := k.pictured()
		left := len(gone.Shelves) + len(gone.Subjects) + len(gone.Waits)
		assert.True(t, gone.Stopped() && gone.Ring.Capacity == 0 && left == 0, "the picture still shows %+v", gone)
		k.define(widgetsBoth)
		assert.Equal(t, k.names("")+k.watch("0"), "", "in a kind that is defined again")
		again := k.pictured()
		assert.True(t, !again.Stopped() && again.Ring.Capacity > 0, "got %+v", again)
	})
}

// fullEtcd is an etcd whose quota is used up.
type fullEtcd struct{ *mvcc.Store }

func (fullEtcd) OptimisticPut(context.Context, string, []byte, int64, kubernetes.PutOptions) (
	response kubernetes.PutResponse, err error) {
	return response, rpctypes.ErrNoSpace
}

// TestARestartServesCustomResources before the server says that it is ready, and goes on with deletions.
func TestARestartServesCustomResources(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		etcd := mvcc.New(clock.RealClock{})
		k := &kindTest{t: t, path: widgetsPath, resource: widgets(t, widgetsBoth)[0]}
		k.serve(etcd, func() {
			k.define(widgetsBoth)
			k.send("POST", "", "application/json", strings.Replace(k.widget("a", `"size":3`), `"name":"a"`,
				`"name":"a","finalizers":["x/y"]`, 1), 201)
		})
		k.serve(fullEtcd{etcd}, func() { assert.Equal(t, k.names(""), "a", "on an etcd that is full") })
		k.serve(etcd, func() {
			assert.Equal(t, k.names("")+", "+k.watch("0"), "a, ADDED a", "after a restart")
			k.at(definitionsPath).send("DELETE", "/widgets.example.com", "", "", 200)
			synctest.Wait()
		})
		k.serve(etcd, func() {
			k.send("POST", "", "application/json", k.widget("c", `"size":3`), 405)
			k.send("PATCH", "/a", "application/merge-patch+json", `{"metadata":{"finalizers":null}}`, 200)
			time.Sleep(2 * definitionsRetry)
			k.send("GET", "", "", "", 404)
		})
	})
}

func TestADefinitionThatCannotBeServedIsRefused(t *testing.T) {
	withWidgets(t, func(k *kindTest) {
		crds := k.at(definitionsPath)
		valid := definitionOf("gadgets", "Namespaced", version("v1", true, anything, ""))
		for _, wrong := range [][3]string{
			{`"name":"gadgets.example.com"`, `"name":"x.example.com"`, "metadata.name must be spec.names.plural"},
			{`"scope":"Namespaced"`, `"scope":"Galaxy"`, "must be Cluster or Namespaced"},
			{`"storage":true`, `"storage":false`, "must have exactly one version marked as storage version"},
			{`"x-kubernetes-preserve-unknown-fields":true`, `"properties":{"a":{}}`, "must not be empty for specified object fields"},
			{`"openAPIV3Schema"`, `"x"`, "schemas are required"},
			{`example.com`, `example`, "should be a domain with at least one dot"},
			{`example.com`, `storage.k8s.io`, "the server has kinds of this group itself"},
			{`example.com`, `coordination.k8s.io`, "the server has kinds of this group itself"},
			{`"kind":"Gadget"`, `"kind":"9"`, "must be a DNS label but for its case"},
			{`"group":`, `"conversion":{"strategy":"Webhook"},"group":`, "there are no webhooks here"},
			{`"served":true`, `"served":true,"additionalPrinterColumns":[{"name":"x","type":"string","jsonPath":"spec"}]`,
				"cannot be read"},
		} {
			text := strings.ReplaceAll(valid, wrong[0], wrong[1])
			got := crds.send("POST", "?fieldValidation=Ignore", "application/json", text, 422).Body.String()
			assert.True(t, strings.Contains(got, wrong[2]), "%s: got %s, want %s", wrong[1], got, wrong[2])
		}
		vain := strings.Replace(valid, `{"type":"object"`, `{"type":"object","x-kubernetes-validations":[{"rule":"true"}]`, 1)
		warned := crds.send("POST", "?dryRun=All", "application/json", vain, 201).Header().Get("Warning")
		assert.True(t, strings.Contains(warned, "there is no CEL"), "got %s", warned)
	})
}

// TestDefinitionsAreServedUpToABound: those beyond it say so, and are served when others go.
func TestDefinitionsAreServedUpToABound(t *testing.T) {
	withWidgets(t, func(k *kindTest) {
		crds := k.at(definitionsPath)
		var versions []string
		for i := range 8 {
			versions = append(versions, version(fmt.Sprintf("v%d", i+1), i == 0, anything, ""))
		}
		last := ""
		for n := 2; n <= maxCustomVersions; n += len(versions) { // widgets have two
			last = fmt.Sprintf("k%dk", n)
			k.define(definitionOf(last, "Cluster", versions...))
		}
		refused := crds.send("GET", "/"+last+".example.com", "", "", 200).Body.String()
		assert.True(t, strings.Contains(refused, "no more than 128 versions"), "got %s", refused)
		k.at("/apis/example.com/v1/").send("GET", last, "", "", 404)
		crds.send("DELETE", "/widgets.example.com", "", "", 200)
		synctest.Wait()
		k.at("/apis/example.com/v1/").send("GET", last, "", "", 200)
	})
}

func (w *world) cached() (names []string) {
	for _, each := range w.Server.Cachers() {
		names = append(names, each.Resource())
	}
	return names
}
