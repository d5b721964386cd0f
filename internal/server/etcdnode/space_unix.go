//go:build linux || darwin

package etcdnode

import "syscall"

// FreeSpace returns how many bytes may still be written where dir is; ok is false if that is not known.
func FreeSpace(dir string) (free int64, ok bool) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return 0, false
	}
	return int64(stat.Bavail) * int64(stat.Bsize), true
}
