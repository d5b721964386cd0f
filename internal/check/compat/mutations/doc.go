// Package mutations breaks the program in one place at a time and wants the test that is named beside it to fail. The
// table pins what tests are for: a test that is deleted, or weakened, leaves a mutation alive.
//
// The rows are in table.txt; the broken source of each lab is one more. Each row is checked for its form in every run;
// FULL=1 runs them, as `make full` does. A row is added with
//
//	go test ./mutations -run 'TestEveryMutationIsCaught/SYMBOL' -v
//
// under FULL=1. Nothing in the working copy is changed.
package mutations
