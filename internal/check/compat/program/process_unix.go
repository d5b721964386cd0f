//go:build unix

package program

import (
	"os/exec"
	"syscall"
)

// ownGroup makes cmd the leader of a new process group.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills every process of the group that pid leads or led.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// groupIsEmpty reports whether every process of the group that pid led has ended.
func groupIsEmpty(pid int) bool { return syscall.Kill(-pid, 0) == syscall.ESRCH }

// Pause stops the process in the middle of whatever it does, as a laptop that is closed. Resume lets it go on.
func (p *Process) Pause() { _ = p.Cmd.Process.Signal(syscall.SIGSTOP) }

// Resume undoes Pause.
func (p *Process) Resume() { _ = p.Cmd.Process.Signal(syscall.SIGCONT) }
