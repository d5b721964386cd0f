package guest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bounds of a discovery. The largest clusters have some hundreds of groups with a few thousand resources.
const (
	maxAnswer    = 2 << 20 // bytes of one answer
	maxGroups    = 1024    // groups and versions
	maxResources = 8192
	maxName      = 253 // bytes, as of any name in Kubernetes
	maxAtOnce    = 8   // requests
)

// Resource is a collection that can be listed and watched.
type Resource struct {
	Name       string `json:"name"` // "pods", "deployments.apps"
	Path       string `json:"path"` // "/api/v1", "/apis/apps/v1"
	Namespaced bool   `json:"namespaced"`
}

// Pods is the resource that a guest begins with. It is on every server, so that a guest needs no discovery to begin.
var Pods = Resource{Name: "pods", Path: "/api/v1", Namespaced: true}

func (r *Resource) plural() string {
	name, _, _ := strings.Cut(r.Name, ".")
	return name
}

// Discovery asks a server which resources it has. It keeps nothing, and may be used from any goroutine.
//
// Upstream: k8s.io/client-go/discovery/discovery_client.go: DiscoveryClient
// Differs: asks for each group and version on its own, each time.
type Discovery struct {
	base   *url.URL
	client *http.Client
}

// NewDiscovery returns a discovery of the server with these addresses. It sends nothing yet. The caller closes it.
func NewDiscovery(servers []*url.URL) *Discovery { return &Discovery{servers[0], newClient(servers)} }

// Close closes idle connections.
func (d *Discovery) Close() { d.client.CloseIdleConnections() }

// All returns the resources of the server's preferred versions, by name, and the groups whose own servers do not
// answer: what these have is left out, as by kubectl. It blocks until the server has answered; the error is 503 if
// /apis or core/v1 cannot be read, if there is too much, or if ctx ends first.
func (d *Discovery) All(ctx context.Context) (found []Resource, missing []string, err error) {
	var groups metav1.APIGroupList
	if err := d.get(ctx, "/apis", &groups); err != nil {
		return nil, nil, err
	}
	if len(groups.Groups) > maxGroups {
		return nil, nil, apierrors.NewServiceUnavailable(
			fmt.Sprintf("discovery: %s names %d groups, and we ask for at most %d", d.base.Host, len(groups.Groups),
				maxGroups))
	}
	if found, err = d.of(ctx, Pods.Path); err != nil {
		return nil, nil, err
	}
	var mu sync.Mutex // guards found and missing
	var asking errgroup.Group
	asking.SetLimit(maxAtOnce)
	for _, group := range groups.Groups {
		asking.Go(func() error {
			more, err := d.of(ctx, "/apis/"+group.PreferredVersion.GroupVersion)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				missing = append(missing, group.Name)
			} else if len(found) <= maxResources {
				found = append(found, more...)
			}
			return nil
		})
	}
	_ = asking.Wait() // errors are in missing
	switch {
	case ctx.Err() != nil:
		return nil, nil, apierrors.NewServiceUnavailable("discovery was cut off: " + ctx.Err().Error())
	case len(found) > maxResources:
		return nil, nil, apierrors.NewServiceUnavailable(fmt.Sprintf("discovery: %s has more than %d resources",
			d.base.Host, maxResources))
	}
	slices.SortFunc(found, func(a, b Resource) int { return strings.Compare(a.Name, b.Name) })
	return found, missing, nil
}

// of returns the resources of one group and version that can be listed and watched.
func (d *Discovery) of(ctx context.Context, path string) ([]Resource, error) {
	var list metav1.APIResourceList
	if err := d.get(ctx, path, &list); err != nil {
		return nil, err
	}
	suffix := ""
	if group, isGroup := strings.CutPrefix(path, "/apis/"); isGroup {
		group, _, _ = strings.Cut(group, "/")
		suffix = "." + group
	}
	found := []Resource{}
	for _, each := range list.APIResources {
		watched := slices.Contains(each.Verbs, "list") && slices.Contains(each.Verbs, "watch")
		if watched && !strings.Contains(each.Name, "/") && len(each.Name)+len(suffix) <= maxName {
			found = append(found, Resource{Name: each.Name + suffix, Path: path, Namespaced: each.Namespaced})
		}
	}
	return found, nil
}

// get fills into with the answer of one path. Its errors are 503.
func (d *Discovery) get(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.base.JoinPath(path).String(), nil)
	if err != nil {
		return apierrors.NewServiceUnavailable(fmt.Sprintf("discovery: %s is no path", path))
	}
	request.Header.Set("Accept", "application/json")
	response, err := d.client.Do(request)
	if err != nil {
		return apierrors.NewServiceUnavailable(fmt.Sprintf("%s cannot be reached: %v", d.base.Host, Reason(err)))
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return apierrors.NewServiceUnavailable(fmt.Sprintf("discovery: %s answers %s", path, response.Status))
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(into); err != nil {
		return apierrors.NewServiceUnavailable(fmt.Sprintf("discovery: %s is not understood: %v", path, err))
	}
	return nil
}

// Find returns the resources of these names: 400 if the server has no such resource, or if two of them have the same
// name on the stage; 503 if the group of one did not answer, or as [Discovery.All].
func (d *Discovery) Find(ctx context.Context, names []string) (found []Resource, err error) {
	if slices.Equal(names, []string{Pods.Name}) {
		return []Resource{Pods}, nil
	}
	all, missing, err := d.All(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		i := slices.IndexFunc(all, func(each Resource) bool { return each.Name == name })
		_, group, _ := strings.Cut(name, ".")
		switch {
		case i < 0 && slices.Contains(missing, group):
			return nil, apierrors.NewServiceUnavailable(
				fmt.Sprintf("discovery: the server did not answer for the group %s", group))
		case i < 0:
			return nil, apierrors.NewBadRequest(fmt.Sprintf("the server has no %q that can be listed and watched",
				name))
		case slices.ContainsFunc(found, func(each Resource) bool { return each.plural() == all[i].plural() }):
			return nil, apierrors.NewBadRequest(
				fmt.Sprintf("%q has the same name as another on the stage: choose one of them", name))
		}
		found = append(found, all[i])
	}
	return found, nil
}

// Watches reports whether the resource of that plural name at that path ("/apis/apps/v1") can be listed and watched. It
// asks the server; the error is 503 if the server does not say.
func (d *Discovery) Watches(ctx context.Context, path, plural string) (bool, error) {
	found, err := d.of(ctx, path)
	return slices.ContainsFunc(found, func(each Resource) bool { return each.plural() == plural }), err
}
