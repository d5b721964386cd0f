package server

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	restful "github.com/emicklei/go-restful/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/managedfields"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	generic "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	realstorage "k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"

	"listwatch/internal/compat/program"
	"listwatch/internal/eventually"
)

// anyPod is a strategy of upstream's registry that takes every pod as it is.
type anyPod struct {
	runtime.ObjectTyper
	names.NameGenerator
}

var (
	_ rest.RESTCreateStrategy = anyPod{}
	_ rest.RESTUpdateStrategy = anyPod{}
)

func (anyPod) NamespaceScoped() bool                                                     { return true }
func (anyPod) AllowCreateOnUpdate(context.Context) bool                                  { return false }
func (anyPod) AllowUnconditionalUpdate(context.Context) bool                             { return true }
func (anyPod) PrepareForCreate(context.Context, runtime.Object)                          {}
func (anyPod) PrepareForUpdate(context.Context, runtime.Object, runtime.Object)          {}
func (anyPod) Validate(context.Context, runtime.Object) field.ErrorList                  { return nil }
func (anyPod) WarningsOnCreate(context.Context, runtime.Object) []string                 { return nil }
func (anyPod) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string { return nil }
func (anyPod) Canonicalize(runtime.Object)                                               {}
func (anyPod) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}

// newTheirServer starts upstream's handlers, registry, cacher and store for pods, on an etcd of their own.
func newTheirServer(t *testing.T) *httptest.Server {
	t.Helper()
	known := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(known))
	// The registry works on internal types; here they are the types of v1.
	known.AddKnownTypes(schema.GroupVersion{Version: runtime.APIVersionInternal}, &corev1.Pod{}, &corev1.PodList{})
	codecs := serializer.NewCodecFactory(known)
	strategy := anyPod{known, names.SimpleNameGenerator}
	pods := &generic.Store{
		NewFunc: newPod, NewListFunc: newPodList, DefaultQualifiedResource: podsResource,
		SingularQualifiedResource: schema.GroupResource{Resource: "pod"}, TableConvertor: rest.NewDefaultTableConvertor(podsResource),
		KeyRootFunc: func(ctx context.Context) string { return generic.NamespaceKeyRootFunc(ctx, prefix) },
		KeyFunc: func(ctx context.Context, name string) (string, error) {
			return generic.NamespaceKeyFunc(ctx, prefix, name)
		},
		ObjectNameFunc: func(obj runtime.Object) (string, error) { return obj.(*corev1.Pod).Name, nil },
		PredicateFunc: func(label labels.Selector, field fields.Selector) realstorage.SelectionPredicate {
			return realstorage.SelectionPredicate{Label: label, Field: field, GetAttrs: theirAttrs}
		},
		CreateStrategy: strategy, UpdateStrategy: strategy, DeleteStrategy: strategy,
		Storage: generic.DryRunnableStorage{Storage: newTheirCache(t, newTheirStore(t, newEtcd(t))), Codec: codec},
	}
	container := restful.NewContainer()
	group := endpoints.APIGroupVersion{
		Root: "/api", GroupVersion: corev1.SchemeGroupVersion, Storage: map[string]rest.Storage{"pods": pods},
		Serializer: codecs, ParameterCodec: runtime.NewParameterCodec(known), Namer: runtime.Namer(meta.NewAccessor()),
		Typer: known, Creater: known, Convertor: known, UnsafeConvertor: runtime.UnsafeObjectConvertor(known), Defaulter: known,
		ConvertabilityChecker: known, EquivalentResourceRegistry: runtime.NewEquivalentResourceRegistry(),
		TypeConverter: managedfields.NewDeducedTypeConverter(), MinRequestTimeout: time.Hour,
	}
	if _, _, err := group.InstallREST(container); err != nil {
		t.Fatal(err)
	}
	addresses := discovery.DefaultAddresses{}
	container.Add(discovery.NewLegacyRootAPIHandler(addresses, codecs, "/api").WebService())
	container.Add(discovery.NewRootAPIsHandler(addresses, codecs).WebService())
	paths := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	server := httptest.NewServer(filters.WithAuditInit(filters.WithRequestInfo(container, paths)))
	t.Cleanup(func() { eventually.Closes(server) })
	return server
}

// TestUpstreamsHandlersBehindTheLens is guest mode, the lens, and kubectl through the lens, on handlers that are not ours.
func TestUpstreamsHandlersBehindTheLens(t *testing.T) {
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	lens := program.StartViz(t, "-flight=off", "-server", newTheirServer(t).URL, "-server-writes")
	kubectl := program.KubectlFor(t, lens)
	watching := program.Start(t, kubectl.Command("get", "pods", "-l", "app=web", "-w", "--output-watch-events", "-o", "name"))
	var seen struct {
		Rows []struct {
			Ask struct {
				Client, Resource string
				Watch            bool
			}
			Frames int
		}
	}
	frames := func(want int) (bool, string) {
		lens.Get(t, "/viz/lens", &seen)
		for _, row := range seen.Rows {
			if strings.HasPrefix(row.Ask.Client, "kubectl/") && row.Ask.Watch && row.Ask.Resource == "pods" && row.Frames == want {
				return true, ""
			}
		}
		return false, fmt.Sprintf("%+v, %s, %s", seen, watching.Stdout.String(), watching.Stderr.String())
	}
	program.Eventually(t, patience, func() (bool, string) { return frames(0) })
	kubectl.Run(t, "run", "a", "--image=example.test/a", "--labels=app=web")
	kubectl.Run(t, "run", "b", "--image=example.test/b")
	kubectl.Run(t, "label", "pod", "a", "turn=2")
	kubectl.Run(t, "delete", "pod", "a", "--wait=false")
	program.Eventually(t, patience, func() (bool, string) { return frames(3) })
	var guest struct {
		Watched []struct {
			Synced  bool
			Objects int
			Trouble string
		}
	}
	program.Eventually(t, patience, func() (bool, string) {
		lens.Get(t, "/viz/guest", &guest)
		return guest.Watched[0].Synced && guest.Watched[0].Objects == 1, fmt.Sprintf("%+v", guest)
	})
	var offered []string
	lens.Get(t, "/viz/guest/resources", &offered)
	if len(offered) != 1 || offered[0] != "pods" {
		t.Errorf("the guest is offered %v", offered)
	}
}
