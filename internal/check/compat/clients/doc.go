// Package clients runs programs that no one here wrote against the program: `make clients` runs all of them, each
// through a lens, once before our server and once before the real kube-apiserver, and compares what they came to know.
// The lens must find nothing wrong with any of them.
//
// Each program is built from a module of its own, which pins it: a folder with a go.mod that names it as a tool, or
// with a small main that uses a library. The JavaScript client wants Node; without that its test says so.
//
//   - election_test.go: managers of controller-runtime, of which one leads, in `make test`, too
//   - clients_test.go: both servers, and what differs between them
//   - programs_test.go: what is done with each program
//   - etcd_test.go: three nodes of etcd and two of our servers, of which the leading node dies
//   - scheduler_test.go: kube-scheduler, kwok and a replica set controller; 500 pods, without a lens
package clients
