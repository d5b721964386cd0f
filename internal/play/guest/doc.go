// Package guest runs our client half on a server that is not ours: one that kubectl proxy, or any other address, leads
// to.
//
//   - transport.go: how the next address is found when one is gone.
//   - discovery.go: what that server has.
//   - guest.go: our informers there.
//   - answers.go: what they may take in, and what is wrong with it.
//   - metrics.go: what the server says of itself.
//
// Differs: upstream has nothing of the kind.
package guest
