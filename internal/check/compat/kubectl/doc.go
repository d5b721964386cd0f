// Package kubectl holds whole sessions with the real, unmodified kubectl against the running program, checked output by
// output. A session is a file in testdata that reads like a terminal; [TestSessions] plays it and compares. What no two
// runs have in common, such as ages, uids and resource versions, is replaced by a word before comparing.
//
// Run with -update to write down what kubectl says now, and read the difference before committing it.
//
// Every session is played by a kubectl of the version this project is compared with, built from its module, and with
// FULL=1 by one of 1.26, built from its own. What that one says differently is listed in [dialects]. To play them with
// yet another:
//
//	go test ./kubectl -kubectl ~/bin/kubectl
package kubectl
