// Package mutations breaks the program in one place at a time and expects a named test to fail. The table records the
// purpose of tests: a mutation survives if its test is deleted or weakened.
//
// The rows are in table.txt; each lab that breaks a chapter's source in place is one more. Every run checks the form of
// each row; FULL=1, which `make full` sets, runs the rows. Run a new row with
//
//	go test ./mutations -run 'TestEveryMutationIsCaught/SYMBOL' -v
//
// under FULL=1. The run does not change the working copy.
package mutations
