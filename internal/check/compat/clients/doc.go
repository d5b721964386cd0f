// Package clients runs programs by other authors against our program: `make clients` runs all of them, each through a
// lens, once with our server and once with the real kube-apiserver, and compares their results. The lens must find
// nothing wrong with any program but kwok.
//
// Each program is built from a module that pins its version. The module names the program as a tool, or contains a
// small main that uses a library. Without npm or tmux, the JavaScript client or k9s does not run, which the log notes.
package clients
