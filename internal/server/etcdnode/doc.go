// Package etcdnode runs an etcd inside the process: one node without a socket, or several on loopback.
//
// A lone node opens no listener at all: its gRPC service is served on an in-memory connection (bufconn), so there is no
// port to collide with and no file to clean up besides the data folder. Several nodes, each with its own folder, talk
// to each other and to their clients over loopback, and both sides show the certificate that etcd made for this run.
// The client is an ordinary clientv3.Client with ordinary reconnect behaviour: while a node is down between the two
// halves of [Etcd.Restart], calls wait, and watches resume from the revision they had reached.
//
// # Goroutines and locks
//
// Start leaves behind etcd's own goroutines, those that serve its listeners, and those of the client. [Etcd.Close]
// returns when all of them have ended, unless etcd is broken. Etcd.lifeMu orders Restart, Run and Close against each
// other; it is the only lock.
package etcdnode
