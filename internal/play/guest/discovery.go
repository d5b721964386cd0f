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

	discovery "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Bounds of a discovery. The largest clusters have some hundreds of groups with a few thousand resources.
const (
	maxAnswer    = 16 << 20 // bytes of one answer
	maxResources = 8192
	maxName      = 253 // bytes, as of any name in Kubernetes
)

const (
	aggregatedKind = "APIGroupDiscoveryList"
	// aggregated asks for all groups, versions and resources at once. v2beta1 is what servers of 1.27 to 1.29 have.
	aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=" + aggregatedKind +
		",application/json;g=apidiscovery.k8s.io;v=v2beta1;as=" + aggregatedKind
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
// Differs: asks each time, and only for all at once, which servers before 1.27 do not answer.
type Discovery struct {
	base   *url.URL
	client *http.Client
}

// NewDiscovery returns a discovery of the server with these addresses. It sends nothing yet. The caller closes it.
func NewDiscovery(servers []*url.URL) *Discovery { return &Discovery{servers[0], newClient(servers)} }

// Close closes idle connections.
func (d *Discovery) Close() { d.client.CloseIdleConnections() }

// All returns the resources of the server's preferred versions, by name. What a group has whose own server does not
// answer is left out, as by kubectl. It blocks until the server has answered; the error is 503 if the server cannot be
// read, if there is too much, or if ctx ends first.
func (d *Discovery) All(ctx context.Context) (all []Resource, err error) {
	for _, path := range []string{"/api", "/apis"} {
		groups, err := d.groups(ctx, path)
		if err != nil {
			return nil, err
		}
		for _, group := range groups {
			if len(group.Versions) == 0 {
				continue
			}
			preferred := group.Versions[0]
			at := strings.ReplaceAll(path+"/"+group.Name+"/"+preferred.Version, "//", "/")
			for _, each := range preferred.Resources {
				name := strings.TrimSuffix(each.Resource+"."+group.Name, ".")
				watched := slices.Contains(each.Verbs, "list") && slices.Contains(each.Verbs, "watch")
				if watched && len(name) <= maxName {
					all = append(all, Resource{name, at, each.Scope == discovery.ScopeNamespace})
				}
			}
		}
	}
	if len(all) > maxResources {
		return nil, unavailable("%s has more than %d resources", d.base.Host, maxResources)
	}
	slices.SortFunc(all, func(a, b Resource) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// groups asks for the groups at a path. Its errors are 503.
func (d *Discovery) groups(ctx context.Context, path string) ([]discovery.APIGroupDiscovery, error) {
	response, err := get(ctx, d.client, d.base.JoinPath(path), aggregated)
	if err != nil {
		return nil, unavailable("%s cannot be reached: %v", d.base.Host, Reason(err))
	}
	defer response.Body.Close()
	var list discovery.APIGroupDiscoveryList
	err = json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&list)
	switch {
	case response.StatusCode != http.StatusOK:
		return nil, unavailable("%s answers %s", path, response.Status)
	case err != nil:
		return nil, unavailable("%s is not understood: %v", path, err)
	case list.Kind != aggregatedKind:
		return nil, unavailable("%s answers with a %.50s: is the server older than 1.27?", path, list.Kind)
	}
	return list.Items, nil
}

func unavailable(format string, args ...any) error {
	return apierrors.NewServiceUnavailable("discovery: " + fmt.Sprintf(format, args...))
}

// Find returns the resources of these names: 400 if the server has no such resource now, or if two of them have the
// same name on the stage; 503 as [Discovery.All].
func (d *Discovery) Find(ctx context.Context, names []string) (chosen []Resource, err error) {
	if slices.Equal(names, []string{Pods.Name}) {
		return []Resource{Pods}, nil
	}
	all, err := d.All(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		i := slices.IndexFunc(all, func(each Resource) bool { return each.Name == name })
		same := func(each Resource) bool { return each.plural() == all[i].plural() }
		switch {
		case i < 0:
			return nil, apierrors.NewBadRequest(fmt.Sprintf("the server has no %q that can be listed and watched, or "+
				"does not answer for its group", name))
		case slices.ContainsFunc(chosen, same):
			return nil, apierrors.NewBadRequest(
				fmt.Sprintf("%q has the same name as another on the stage: choose one of them", name))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}
