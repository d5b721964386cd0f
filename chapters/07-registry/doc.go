// Package registry knows what a resource means: what may be created and changed, what deletion does, and how a
// request's namespace, name and selectors become one storage key and one predicate.
//
//   - predicate.go: [Store.Watch] and [Store.List]: one key or one prefix, never both.
//   - storage_factory.go: [StorageWithCacher], the place where a cache is put between registry and etcd.
//   - resource.go: [Resource], everything that is known about a kind before anything is built, and its keys.
//   - store.go: [Store], create and get for any resource; update.go: a change is a function.
//   - strategy.go: what differs from kind to kind, and the order in which a write passes through it.
//   - dryrun.go: [DryRunnableStorage], writes that stop just before the write.
//   - delete.go: first a mark, then the end; lifecycle.go: what namespaces allow.
//   - kinds.go: the kinds, a row each; binding.go, status.go: subresources.
//
// Strategies, defaults, validation and columns of all kinds are in internal/kube/resources.
//
// # Locks and goroutines
//
// A [Store] has neither: nothing in it changes after [New]. Two writers of one object meet in
// [storage.Interface.GuaranteedUpdate], which calls the functions handed to it again for the writer that came second;
// those functions therefore keep nothing from one call to the next except what they overwrite.
//
// # Contract
//
// Errors that leave the package carry a Kubernetes Status. Objects that go in belong to the registry from then on;
// objects that come out belong to the caller, except those in watch events, which are shared and must not be changed.
//
// Upstream: k8s.io/apiserver/pkg/registry/generic/registry
package registry
