// Package kubectl plays sessions of the real, unmodified kubectl against the running program, and compares each output.
// A session is a file in testdata that reads like a terminal; [TestSessions] plays it and compares. Before comparing,
// it replaces values that differ from run to run, such as ages, uids and resource versions, by a word.
//
// Run with -update to write kubectl's current outputs, and read the difference before committing it.
//
// The test plays every session with a kubectl of the version this project is compared with, built from its module, and
// with FULL=1 with one of 1.26, built from a module of its own. [dialects] lists how its outputs differ. To play the
// sessions with another kubectl:
//
//	go test ./kubectl -kubectl ~/bin/kubectl
//
// With -server the test plays them at a real kube-apiserver: that of rollout also needs kube-controller-manager,
// kube-scheduler and kwok, which ../clients starts.
package kubectl
