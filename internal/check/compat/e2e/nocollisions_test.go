//go:build !full

package e2e

import "testing"

// collides looks for texts that stand on each other, in make full.
func (p *page) collides(*testing.T, string) {}
