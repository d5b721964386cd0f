//go:build !full

package e2e

import "testing"

// collides checks for overlapping texts only in make full.
func (p *page) collides(*testing.T, string) {}
