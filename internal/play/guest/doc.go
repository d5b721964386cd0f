// Package guest runs our client half on a server that is not ours: one that kubectl proxy, or any other address, leads
// to.
//
// Differs: upstream has nothing of the kind.
package guest
