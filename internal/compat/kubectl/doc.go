// Package kubectl holds whole sessions with the real, unmodified kubectl against the running program, checked output by
// output. A session is a file in testdata that reads like a terminal; [TestSessions] plays it and compares. What no two
// runs have in common, such as ages, uids and resource versions, is replaced by a word before comparing.
//
// Run with -update to write down what kubectl says now, and read the difference before committing it.
//
// The kubectl is the one of the version this project is compared with, built from its module. If another one is found on
// PATH, it plays every session too; what it says differently is listed in [dialects].
package kubectl
