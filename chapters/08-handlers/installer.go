package handlers

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	registry "listwatch/chapters/07-registry"
	"listwatch/internal/scheme"
)

// scope is what the handlers of one path know about it. It is shared by all requests and never changed.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/rest.go: RequestScope
type scope struct {
	server      *server
	storage     Storage
	resource    *registry.Resource
	subresource string
	kind        schema.GroupVersionKind // of the bodies
	forceWatch  bool                    // the deprecated /watch/ paths watch whatever the query says
	managed     *fieldManager           // nil: what is written here is nobody's
}

// namespaceAndName returns what the path says; either may be "".
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/namer.go: ContextBasedNaming
func (s *scope) namespaceAndName(r *http.Request) (namespace, name string) {
	return chi.URLParam(r, "namespace"), chi.URLParam(r, "name")
}

func contextWithRoute(ctx context.Context, route *chi.Context) context.Context {
	return context.WithValue(ctx, chi.RouteCtxKey, route)
}

// apiInstaller turns storages into routes. What a storage can do is found by asking it, interface by interface.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/installer.go: APIInstaller
type apiInstaller struct {
	server  *server
	router  chi.Router
	storage map[string]Storage
}

// install registers the routes of every storage and returns what discovery says of them.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/installer.go: (*APIInstaller).Install
func (a *apiInstaller) install() []apiResource {
	var paths []string
	for path := range a.storage {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	var resources []apiResource
	for _, path := range paths {
		resources = append(resources, a.registerResourceHandlers(path, a.storage[path]))
	}
	return resources
}

// apiResource is what discovery says of one path.
type apiResource struct {
	scope *scope
	verbs metav1.Verbs
}

// registerResourceHandlers registers the routes of one storage.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/installer.go: (*APIInstaller).registerResourceHandlers
func (a *apiInstaller) registerResourceHandlers(path string, storage Storage) apiResource {
	_, subresource, _ := strings.Cut(path, "/")
	kinds, _, err := scheme.Scheme.ObjectKinds(storage.New())
	if err != nil {
		panic("handlers: install " + path + ": " + err.Error())
	}
	s := &scope{server: a.server, storage: storage, resource: storage.Describe(), subresource: subresource, kind: kinds[0]}
	if _, ok := storage.(Updater); ok {
		s.managed = newFieldManager(s.resource, subresource, s.kind)
	}
	if subresource != "" {
		return apiResource{scope: s, verbs: a.registerSubresource(s)}
	}
	verbs := a.registerCollection(s)
	verbs = append(verbs, a.registerItem(s)...)
	a.registerDeprecatedWatch(s)
	slices.Sort(verbs)
	return apiResource{scope: s, verbs: verbs}
}

const apiRoot = "/api/v1"

// collectionPath is where a collection is found: of one namespace, if the kind has any.
func (s *scope) collectionPath(root string) string {
	if s.resource.Namespaced {
		return root + "/namespaces/{namespace}/" + s.resource.Name
	}
	return root + "/" + s.resource.Name
}

func (a *apiInstaller) registerCollection(s *scope) metav1.Verbs {
	var verbs metav1.Verbs
	path := s.collectionPath(apiRoot)
	if _, ok := s.storage.(Lister); ok {
		a.handle(s, http.MethodGet, path, "list", s.ListResource)
		verbs = append(verbs, "list")
		if s.resource.Namespaced {
			// The same handler, for all namespaces at once.
			a.handle(s, http.MethodGet, apiRoot+"/"+s.resource.Name, "list", s.ListResource)
		}
	}
	if _, ok := s.storage.(Watcher); ok {
		verbs = append(verbs, "watch")
	}
	if _, ok := s.storage.(Creater); ok {
		a.handle(s, http.MethodPost, path, "create", s.CreateResource)
		verbs = append(verbs, "create")
	}
	if _, ok := s.storage.(CollectionDeleter); ok {
		a.handle(s, http.MethodDelete, path, "deletecollection", s.DeleteCollection)
		verbs = append(verbs, "deletecollection")
	}
	return verbs
}

func (a *apiInstaller) registerItem(s *scope) metav1.Verbs {
	verbs := a.registerReadWrite(s, s.collectionPath(apiRoot)+"/{name}")
	if _, ok := s.storage.(GracefulDeleter); ok {
		a.handle(s, http.MethodDelete, s.collectionPath(apiRoot)+"/{name}", "delete", s.DeleteResource)
		verbs = append(verbs, "delete")
	}
	return verbs
}

// registerReadWrite registers what an object and its subresources have in common.
func (a *apiInstaller) registerReadWrite(s *scope, path string) metav1.Verbs {
	var verbs metav1.Verbs
	_, getter := s.storage.(Getter)
	if getter {
		a.handle(s, http.MethodGet, path, "get", s.GetResource)
		verbs = append(verbs, "get")
	}
	if _, ok := s.storage.(Updater); ok {
		a.handle(s, http.MethodPut, path, "update", s.UpdateResource)
		verbs = append(verbs, "update")
		if getter {
			a.handle(s, http.MethodPatch, path, "patch", s.PatchResource)
			verbs = append(verbs, "patch")
		}
	}
	return verbs
}

func (a *apiInstaller) registerSubresource(s *scope) metav1.Verbs {
	path := s.collectionPath(apiRoot) + "/{name}/" + s.subresource
	verbs := a.registerReadWrite(s, path)
	if _, ok := s.storage.(NamedCreater); ok {
		a.handle(s, http.MethodPost, path, "create", s.CreateResource)
		verbs = append(verbs, "create")
	}
	slices.Sort(verbs)
	return verbs
}

// registerDeprecatedWatch registers the paths that clients of before 1.11 watch at. They are lists that never end, so
// their options are checked as a list's.
func (a *apiInstaller) registerDeprecatedWatch(s *scope) {
	if _, ok := s.storage.(Watcher); !ok {
		return
	}
	watching := *s
	watching.forceWatch = true
	path := s.collectionPath(apiRoot + "/watch")
	a.handle(&watching, http.MethodGet, path, "watch", watching.ListResource)
	a.handle(&watching, http.MethodGet, path+"/{name}", "watch", watching.ListResource)
	if s.resource.Namespaced {
		a.handle(&watching, http.MethodGet, apiRoot+"/watch/"+s.resource.Name, "watch", watching.ListResource)
	}
}

func (a *apiInstaller) handle(s *scope, method, path, verb string, handler http.HandlerFunc) {
	a.router.Method(method, path, a.server.instrument(route{scope: s, verb: verb}, handler))
}
