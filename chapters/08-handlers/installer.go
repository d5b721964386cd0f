package handlers

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	registry "listwatch/chapters/07-registry"
	"listwatch/internal/kube/scheme"
)

// The routes of pods, which have all of them. A route exists if the storage implements the interface in brackets.
//
//	GET     /api/v1/namespaces/{namespace}/pods                  ListResource, also a watch   [Lister] [Watcher]
//	GET     /api/v1/pods                                         the same, of all namespaces
//	POST    /api/v1/namespaces/{namespace}/pods                  CreateResource               [Creater]
//	DELETE  /api/v1/namespaces/{namespace}/pods                  DeleteCollection             [CollectionDeleter]
//	GET     /api/v1/namespaces/{namespace}/pods/{name}           GetResource                  [Getter]
//	PUT     /api/v1/namespaces/{namespace}/pods/{name}           UpdateResource               [Updater]
//	DELETE  /api/v1/namespaces/{namespace}/pods/{name}           DeleteResource               [GracefulDeleter]
//	GET     /api/v1/namespaces/{namespace}/pods/{name}/status    GetResource, and UpdateResource for PUT
//	POST    /api/v1/namespaces/{namespace}/pods/{name}/binding   CreateResource               [NamedCreater]
//	GET     /api/v1/watch/namespaces/{namespace}/pods            ListResource, always a watch; deprecated
//	GET     /api/v1/watch/namespaces/{namespace}/pods/{name}     the same, of one object
//	GET     /api/v1/watch/pods                                   the same, of all namespaces
//
// A resource of another group has them below /apis/GROUP/VERSION, a cluster-scoped one without /namespaces/{namespace}.
// Every request passes [Server.instrument] first.

// Scope describes one path to its handlers. From the first request on it is shared and never
// changed.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/rest.go: RequestScope
type Scope struct {
	Storage     Storage
	Resource    *registry.Resource
	Subresource string
	Kind        schema.GroupVersionKind // of the bodies
	Verbs       metav1.Verbs            // of this path, sorted
	Managed     FieldManager            // nil: writes here note no managers

	server     *Server
	forceWatch bool // for the deprecated /watch/ paths
}

// NamespaceAndName returns those in the path; either may be "".
//
// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/namer.go: ContextBasedNaming
func (s *Scope) NamespaceAndName(r *http.Request) (namespace, name string) {
	return chi.URLParam(r, "namespace"), chi.URLParam(r, "name")
}

// apiInstaller turns storages into routes, by the interfaces that they implement.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/installer.go: APIInstaller
type apiInstaller struct{ server *Server }

// install registers the routes of every storage and returns their scopes.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/installer.go: (*APIInstaller).Install
func (a apiInstaller) install() []*Scope {
	var scopes []*Scope
	for _, path := range slices.Sorted(maps.Keys(a.server.Storage)) {
		scopes = append(scopes, a.registerResourceHandlers(path, a.server.Storage[path]))
	}
	return scopes
}

// registerResourceHandlers registers the routes of one storage.
//
// Upstream: k8s.io/apiserver/pkg/endpoints/installer.go: (*APIInstaller).registerResourceHandlers
// Differs: the router is chi; upstream's is go-restful, with an adapter for each handler, such as restfulListResource.
func (a apiInstaller) registerResourceHandlers(path string, storage Storage) *Scope {
	_, subresource, _ := strings.Cut(path, "/")
	kinds, _, err := scheme.Scheme.ObjectKinds(storage.New())
	if err != nil {
		panic("handlers: install " + path + ": " + err.Error())
	}
	s := &Scope{server: a.server, Storage: storage, Resource: storage.Describe(), Subresource: subresource,
		Kind: kinds[0]}
	if _, ok := storage.(Updater); ok && a.server.Fields != nil {
		s.Managed = a.server.Fields(s)
	}
	if subresource == "" {
		a.registerCollection(s)
		a.registerDeprecatedWatch(s)
	}
	a.registerItem(s)
	slices.Sort(s.Verbs)
	return s
}

// Root returns the path below which the API serves the resource's group: "/api/v1", "/apis/coordination.k8s.io/v1".
func Root(resource *registry.Resource) string {
	if resource.GroupVersion.Group == "" {
		return "/api/" + resource.GroupVersion.Version
	}
	return "/apis/" + resource.GroupVersion.String()
}

// collectionPath is the path of a collection, in one namespace if the kind has namespaces.
func (s *Scope) collectionPath(root string) string {
	if s.Resource.Namespaced {
		return root + "/namespaces/{namespace}/" + s.Resource.Name
	}
	return root + "/" + s.Resource.Name
}

// ItemPath is the path of one object, or of its subresource.
func (s *Scope) ItemPath() string {
	path := s.collectionPath(Root(s.Resource)) + "/{name}"
	if s.Subresource != "" {
		path += "/" + s.Subresource
	}
	return path
}

func (a apiInstaller) registerCollection(s *Scope) {
	path := s.collectionPath(Root(s.Resource))
	if _, ok := s.Storage.(Lister); ok {
		a.handle(s, http.MethodGet, path, "list", s.ListResource)
		if s.Resource.Namespaced {
			// The same handler, for all namespaces at once.
			a.server.Handle(s, http.MethodGet, Root(s.Resource)+"/"+s.Resource.Name, "list",
				s.ListResource)
		}
	}
	if _, ok := s.Storage.(Watcher); ok {
		s.Verbs = append(s.Verbs, "watch") // its route is the list's
	}
	if _, ok := s.Storage.(Creater); ok {
		a.handle(s, http.MethodPost, path, "create", s.Answer(s.CreateResource))
	}
	if _, ok := s.Storage.(CollectionDeleter); ok {
		a.handle(s, http.MethodDelete, path, "deletecollection", s.Answer(s.DeleteCollection))
	}
}

// registerItem registers the routes of one object, or of one of its subresources.
func (a apiInstaller) registerItem(s *Scope) {
	path := s.ItemPath()
	if _, ok := s.Storage.(Getter); ok {
		a.handle(s, http.MethodGet, path, "get", s.Answer(s.GetResource))
	}
	if _, ok := s.Storage.(Updater); ok {
		a.handle(s, http.MethodPut, path, "update", s.Answer(s.UpdateResource))
	}
	if _, ok := s.Storage.(NamedCreater); ok {
		a.handle(s, http.MethodPost, path, "create", s.Answer(s.CreateResource))
	}
	if _, ok := s.Storage.(GracefulDeleter); ok && s.Subresource == "" {
		a.handle(s, http.MethodDelete, path, "delete", s.Answer(s.DeleteResource))
	}
}

// handle adds a route and its verb.
func (a apiInstaller) handle(s *Scope, method, path, verb string, handler http.HandlerFunc) {
	a.server.Handle(s, method, path, verb, handler)
	s.Verbs = append(s.Verbs, verb)
}

// registerDeprecatedWatch registers the paths for watches of clients before 1.11. Their options are checked as a
// list's.
func (a apiInstaller) registerDeprecatedWatch(s *Scope) {
	if _, ok := s.Storage.(Watcher); !ok {
		return
	}
	watching := *s
	watching.forceWatch = true
	path := s.collectionPath(Root(s.Resource) + "/watch")
	a.server.Handle(&watching, http.MethodGet, path, "watch", watching.ListResource)
	a.server.Handle(&watching, http.MethodGet, path+"/{name}", "watch", watching.ListResource)
	if s.Resource.Namespaced {
		a.server.Handle(&watching, http.MethodGet, Root(s.Resource)+"/watch/"+s.Resource.Name, "watch",
			watching.ListResource)
	}
}
