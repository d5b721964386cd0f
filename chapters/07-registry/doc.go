// Package registry knows what a resource means: what may be created and changed, what deletion does, and how a
// request's namespace, name and selectors become one storage key and one predicate.
//
// Strategies, defaults, validation and columns of all kinds are in internal/kube/resources.
//
// # Locks and goroutines
//
// A [Store] has neither: nothing in it changes after [New]. Two writers of one object meet in
// [storage.Interface.GuaranteedUpdate], which calls the functions of the writer that came second once more. These
// functions therefore keep nothing from one call to the next except what they overwrite.
//
// # Contract
//
// Errors that leave the package carry a Kubernetes Status. Objects that go in belong to the registry from then on;
// objects that come out belong to the caller, except those in watch events, which are shared and must not be changed.
//
// Upstream: k8s.io/apiserver/pkg/registry/generic/registry
package registry
