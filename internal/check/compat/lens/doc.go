// Package lens plays published incidents of list and watch: small clients, each with one mistake, talk through the lens
// of one of our programs to another of our programs, and the lens has to say in words what is wrong.
package lens
