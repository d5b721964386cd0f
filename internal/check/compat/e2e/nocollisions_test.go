//go:build !full

package e2e

import "testing"

// collides does nothing: only `make full` checks for overlapping texts.
func (p *page) collides(*testing.T, string) {}
