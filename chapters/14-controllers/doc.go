// Package controllers is what the whole pipeline is for: programs that are told that something changed, look at what
// is, and do the next thing about it, over HTTP. Here are the queue they all share and the controllers that let a pod
// live and die, and that make pods of a deployment.
//
//   - queue.go, delaying.go, ratelimiting.go: the workqueue, in the three layers it is built of.
//   - worker.go: the loop around it: take a key, look, let go; on failure, later again.
//   - scheduler.go: [Scheduler] gives pods without a node one.
//   - kubelet.go, register.go, podstatus.go: [Kubelet], one per node, brings the node's pods to life and to their end.
//   - elector.go: [LeaderElector] lets one of several copies of a program act.
//   - recorder.go: [EventRecorder] writes what they have done into events.
//   - namespaces.go: [NamespaceController] empties namespaces that are being deleted.
//   - replica_set.go, replica_set_pods.go: [ReplicaSetController] keeps as many pods as are wanted. It knows by
//     expectations.go, [ControllerExpectations], when its informer is too old to count; by controller_ref.go, which
//     pods are its own.
//   - deployment.go: [DeploymentController] makes a replica set of each template (deployment_revision.go), moves the
//     pods from one to the next (deployment_rollout.go) and says how far it is (deployment_status.go).
//   - follow.go: how these two follow an informer.
//   - garbage_collector.go: [GarbageCollector] follows every kind; garbage_attempt.go: it deletes what no owner is left
//     of.
//
// # Concurrency
//
// A controller's event handler runs on the informer's (or the reflector's) goroutine and does one thing: it adds a key
// to the workqueue. All work is done by the worker, one goroutine per controller, so whatever only the worker touches
// needs no lock. Exactly: a key is handed to at most one worker at a time, and an Add that happens after the worker got
// the key leads to another look after its Done. Less formally: whatever changes, a worker looks at it afterwards.
//
// Locks: Queue.mu, RateLimitingQueue.failuresMu, ControllerExpectations.mu and the scheduler's node counts are each
// innermost; none is held while another is taken.
//
// Upstream: k8s.io/client-go/util/workqueue
package controllers
