// Package kubectl plays sessions of the real, unmodified kubectl against the running program. A session is a file in
// testdata that reads like a terminal. [TestSessions] plays it, and compares each output with the file's. Before it
// compares, the test replaces values that differ from run to run, such as ages, uids and resource versions, by a word.
//
// Run with -update to write kubectl's current outputs, and read the difference before committing it.
//
// The test plays every session with a kubectl of the version this project is compared with. With FULL=1 it also plays
// them with kubectl 1.26. [dialects] lists the differences in that kubectl's outputs. To play the sessions with another
// kubectl:
//
//	go test ./kubectl -kubectl ~/bin/kubectl
//
// With -server the test plays the sessions on a real kube-apiserver. The session rollout also needs
// kube-controller-manager, kube-scheduler and kwok, which ../clients starts.
package kubectl
