// Package reach holds, with golang.org/x/tools/cmd/deadcode, that the programs reach every function of the packages
// that they are built of. It has a folder of its own because it looks at the whole program, which takes half a minute.
package reach
