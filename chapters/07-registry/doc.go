// Package registry knows what a resource means: what may be created and changed, what deletion does, and how a
// request's namespace, name and selectors become one storage key and one predicate.
//
//   - resource.go: [Resource], everything that is known about a kind before anything is built, and its keys.
//   - store.go: [Store], create, get and list for any resource; update.go and delete.go: the two verbs with a story.
//   - predicate.go: [Store.WatchPredicate] and [Store.ListPredicate]: one key or one prefix, never both.
//   - strategy.go: what differs from kind to kind, and the order in which a write passes through it.
//   - dryrun.go: [DryRunnableStorage], writes that stop just before the write.
//   - decorated_watcher.go: a watch whose objects are changed on their way out.
//   - storage_factory.go: [StorageWithCacher], the place where a cache is put between registry and etcd.
//   - lifecycle.go: nothing is created in a namespace that is not there, and none goes before what is in it.
//   - table.go: rows and columns for people. pod.go, node.go and so on: one short file for each kind.
//
// # Locks and goroutines
//
// A [Store] has neither: nothing in it changes after [New]. Two writers of one object meet in
// [storage.Interface.GuaranteedUpdate], which calls the functions handed to it again for whoever came second; those
// functions therefore keep nothing from one call to the next except what they overwrite. The only goroutine of the
// package belongs to a [DecoratedWatcher].
//
// # Contract
//
// Errors that leave the package carry a Kubernetes Status. Objects that go in belong to the registry from then on;
// objects that come out belong to the caller, except those in watch events, which are shared and must not be changed.
//
// Upstream: k8s.io/apiserver/pkg/registry/generic/registry
package registry
