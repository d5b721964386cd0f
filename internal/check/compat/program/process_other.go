//go:build !unix

package program

import (
	"os"
	"os/exec"
)

// Without process groups only the process itself is known.

func ownGroup(*exec.Cmd) {}

func killGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}

func groupIsEmpty(int) bool { return true }

// Pause does nothing here.
func (p *Process) Pause() {}

// Resume undoes Pause.
func (p *Process) Resume() {}
