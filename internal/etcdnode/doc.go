// Package etcdnode runs one etcd inside the process and connects to it without a socket.
//
// The server opens no listener at all: its gRPC service is served on an in-memory connection (bufconn), so there is no
// port to collide with and no file to clean up besides the data folder. The client is an ordinary clientv3.Client with
// ordinary reconnect behaviour: while the server is down between the two halves of [Node.Restart], calls wait, and
// watches resume from the revision they had reached.
//
// [Temporary] makes a data folder that its program removes, or, after a kill, [RemoveLeft] of the next program.
//
// # Goroutines and locks
//
// Start leaves behind etcd's own goroutines, one that serves the in-memory listener, and those of the client.
// [Node.Close] returns when all of them have ended. Node.mu orders Start, Restart and Close against each other and
// against the client's dialer.
package etcdnode
