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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Resource is what can be listed and watched.
type Resource struct {
	Name       string `json:"name"` // "pods", "deployments.apps"
	Path       string `json:"path"` // "/api/v1", "/apis/apps/v1"
	Namespaced bool   `json:"namespaced"`
}

// Pods is the resource that a guest begins with; no discovery is needed for it.
var Pods = Resource{Name: "pods", Path: "/api/v1", Namespaced: true}

func (r *Resource) plural() string {
	name, _, _ := strings.Cut(r.Name, ".")
	return name
}

// Discovery asks a server what it has.
type Discovery struct {
	// Set by NewDiscovery, never changed.
	base   *url.URL
	client *http.Client

	mu    sync.Mutex // guards known; innermost
	known []Resource // nil: not asked yet
}

// NewDiscovery returns a discovery that has not asked yet.
func NewDiscovery(servers []*url.URL) *Discovery {
	return &Discovery{base: servers[0], client: newClient(servers)}
}

// Close closes the connections that are left.
func (d *Discovery) Close() { d.client.CloseIdleConnections() }

// All returns what can be listed and watched, by name. The server is asked once, and again if that failed.
func (d *Discovery) All(ctx context.Context) ([]Resource, error) {
	if known := d.remembered(); known != nil {
		return known, nil
	}
	var groups metav1.APIGroupList
	if err := d.get(ctx, "/apis", &groups); err != nil {
		return nil, err
	}
	found, err := d.of(ctx, "/api/v1", "")
	if err != nil {
		return nil, err
	}
	for _, group := range groups.Groups {
		more, err := d.of(ctx, "/apis/"+group.PreferredVersion.GroupVersion, "."+group.Name)
		if err == nil { // a group whose own server is away is left out, as kubectl does
			found = append(found, more...)
		}
	}
	slices.SortFunc(found, func(a, b Resource) int { return strings.Compare(a.Name, b.Name) })
	d.remember(found)
	return found, nil
}

func (d *Discovery) remembered() []Resource {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known
}

func (d *Discovery) remember(found []Resource) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known = found
}

// of returns the resources of one group and version that have both verbs.
func (d *Discovery) of(ctx context.Context, path, suffix string) (found []Resource, err error) {
	var list metav1.APIResourceList
	if err := d.get(ctx, path, &list); err != nil {
		return nil, err
	}
	for _, each := range list.APIResources {
		if slices.Contains(each.Verbs, "list") && slices.Contains(each.Verbs, "watch") && !strings.Contains(each.Name, "/") {
			found = append(found, Resource{Name: each.Name + suffix, Path: path, Namespaced: each.Namespaced})
		}
	}
	return found, nil
}

// maxDiscovery is how long an answer may be.
const maxDiscovery = 4 << 20

func (d *Discovery) get(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.base.JoinPath(path).String(), nil)
	if err != nil {
		return fmt.Errorf("ask %s: %w", path, err)
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
	if err := json.NewDecoder(io.LimitReader(response.Body, maxDiscovery)).Decode(into); err != nil {
		return apierrors.NewServiceUnavailable(fmt.Sprintf("discovery: %s is not understood: %v", path, err))
	}
	return nil
}

// Find returns the resources that were chosen: 400 if there is one that the server does not have, or whose name on the stage another
// has, too.
func (d *Discovery) Find(ctx context.Context, names []string) (found []Resource, err error) {
	if slices.Equal(names, []string{Pods.Name}) {
		return []Resource{Pods}, nil
	}
	all, err := d.All(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		i := slices.IndexFunc(all, func(each Resource) bool { return each.Name == name })
		if i < 0 {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("the server has no %q that can be listed and watched", name))
		}
		if slices.ContainsFunc(found, func(each Resource) bool { return each.plural() == all[i].plural() }) {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%q has the same name as another on the stage: choose one of them", name))
		}
		found = append(found, all[i])
	}
	return found, nil
}
