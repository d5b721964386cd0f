//go:build full

package main

import (
	"os"
	"testing"
)

// maxSize is what a reader on a phone may be asked to load, in bytes.
const maxSize = 10 << 20

// TestTheMachineIsSmall looks at what `make tab` has built.
func TestTheMachineIsSmall(t *testing.T) {
	info, err := os.Stat("../../bin/tab/site/machine.gz")
	if err != nil {
		t.Fatalf("make tab builds it: %v", err)
	}
	if info.Size() > maxSize {
		t.Errorf("the machine has %d bytes by gzip, more than %d", info.Size(), maxSize)
	}
}
