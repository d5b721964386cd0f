// Package etcdnode runs an etcd of one member inside the process, and looks at how an etcd is, here or elsewhere.
//
// The member opens no listener: its gRPC service is served on an in-memory connection (bufconn), so there is no port to
// collide with and no file to clean up besides the data folder. The client is an ordinary clientv3.Client with ordinary
// reconnect behaviour: while the member is down between the two halves of [Etcd.Restart], calls wait, and watches
// resume from the revision they had reached.
//
// # Goroutines and locks
//
// Start leaves behind etcd's own goroutines, the one that serves the connection, and those of the client. [Etcd.Close]
// returns when all of them have ended, unless etcd is broken. Etcd.lifeMu orders Restart and Close against each other;
// it is the only lock.
package etcdnode
