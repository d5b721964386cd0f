// Package controllers is what the whole pipeline is for: programs that learn of a change, look at the present state,
// and take the next step, over HTTP. Here are the kind of queue that they all use, the controllers that let a pod live
// and die, and those that make pods of a deployment.
//
// # Concurrency
//
// A controller's event handler runs on its listener's goroutine (a kubelet's store on the reflector's), and adds a key
// to the workqueue. All work is done by the worker, one goroutine per controller, so data that only the worker touches
// needs no lock. Exactly: a key is handed to at most one worker at a time, and an Add that happens after the worker got
// the key leads to another look after the key's Done. Less formally: after every change a worker looks at the object.
//
// A worker calls Done for each key that it got, or no worker gets that key again. Forget does not do that: it only
// resets the count of failures. After ShutDown, Add does nothing, and Get hands out the queued keys, and then ends the
// workers. Upstream's ShutDownWithDrain also waits for each Done; if one is missing, it waits until ShutDown.
//
// Locks: Queue.mu, RateLimitingQueue.failuresMu, ControllerExpectations.mu and the scheduler's node counts are each
// innermost; none is held while another is taken.
//
// Upstream: k8s.io/client-go/util/workqueue
package controllers
