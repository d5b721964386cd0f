// Package program builds and starts what the tests of this module run as processes of their own: cmd/viz, and the real
// kubectl against it. What it knows of the program are the contracts: flags, the ready line, URLs.
//
// Binaries are kept in bin/compat between runs. Under the race detector the program is built with it too.
package program
