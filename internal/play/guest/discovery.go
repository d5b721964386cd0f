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

const (
	// maxAnswer is how many bytes one answer of a discovery may have. The largest clusters have some hundreds of groups
	// with a few thousand resources.
	maxAnswer = 16 << 20

	aggregatedKind = "APIGroupDiscoveryList"
	// aggregated asks for all groups, versions and resources at once. v2beta1 is what servers of 1.27 to 1.29 have.
	aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=" + aggregatedKind +
		",application/json;g=apidiscovery.k8s.io;v=v2beta1;as=" + aggregatedKind
)

// Resource is a collection that can be listed and watched.
type Resource struct {
	Name       string // "pods", "deployments.apps"
	Path       string // "/api/v1", "/apis/apps/v1"
	Namespaced bool
}

// Pods is the resource that a guest begins with. It is on every server, so that a guest needs no discovery to begin.
var Pods = Resource{Name: "pods", Path: "/api/v1", Namespaced: true}

func (r *Resource) plural() string {
	name, _, _ := strings.Cut(r.Name, ".")
	return name
}

// Discover returns the resources of a server's preferred versions, by name. What a group has whose own server does not
// answer is left out, as by kubectl. It blocks until the server has answered; the error is 503 if the server cannot be
// read, if there is too much, or if ctx ends first.
//
// Upstream: k8s.io/client-go/discovery/discovery_client.go: DiscoveryClient
// Differs: asks each time, and only for all at once, which servers before 1.27 do not answer.
func Discover(ctx context.Context, servers []*url.URL) (all []Resource, err error) {
	client := newClient(servers)
	defer client.CloseIdleConnections()
	for _, path := range []string{"/api", "/apis"} {
		groups, err := groupsAt(ctx, client, servers[0], path)
		if err != nil {
			return nil, apierrors.NewServiceUnavailable("discovery: " + err.Error())
		}
		for _, group := range groups {
			if len(group.Versions) == 0 {
				continue
			}
			preferred := group.Versions[0]
			at := strings.ReplaceAll(path+"/"+group.Name+"/"+preferred.Version, "//", "/")
			for _, each := range preferred.Resources {
				if slices.Contains(each.Verbs, "list") && slices.Contains(each.Verbs, "watch") {
					name := strings.TrimSuffix(each.Resource+"."+group.Name, ".")
					all = append(all, Resource{name, at, each.Scope == discovery.ScopeNamespace})
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b Resource) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// groupsAt asks for the groups at a path.
func groupsAt(ctx context.Context, client *http.Client, base *url.URL, path string) ([]discovery.APIGroupDiscovery,
	error) {
	response, err := get(ctx, client, base.JoinPath(path), aggregated)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be reached: %v", base.Host, Reason(err))
	}
	defer response.Body.Close()
	var list discovery.APIGroupDiscoveryList
	err = json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&list)
	switch {
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s answers %s", path, response.Status)
	case err != nil:
		return nil, fmt.Errorf("%s is not understood: %w", path, err)
	case list.Kind != aggregatedKind:
		return nil, fmt.Errorf("%s answers with a %.50s: is the server older than 1.27?", path, list.Kind)
	}
	return list.Items, nil
}

// Find returns the resources of a choice: 400 if the server has no such resource now, or if two of them have the same
// name on the stage; 503 as [Discover].
func (c *Choice) Find(ctx context.Context, servers []*url.URL) (chosen []Resource, err error) {
	if slices.Equal(c.Resources, []string{Pods.Name}) {
		return []Resource{Pods}, nil
	}
	if len(c.Resources) == 0 || len(c.Resources) > maxChosen {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("choose 1 to %d resources", maxChosen))
	}
	all, err := Discover(ctx, servers)
	if err != nil {
		return nil, err
	}
	for _, name := range c.Resources {
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
