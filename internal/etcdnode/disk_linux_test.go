package etcdnode

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func init() { roles["fill"] = fill }

// fill starts etcd on a disk of some megabytes, and writes until etcd cannot go on.
func fill(argument string) error {
	megabytes, dir, _ := strings.Cut(argument, " ")
	data := filepath.Join(dir, "data")
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+megabytes+"m"); err != nil {
		return err
	}
	node, err := Start(context.Background(), Options{Dir: data})
	if err != nil {
		return err
	}
	go func() {
		value := strings.Repeat("x", 300<<10)
		for i := range 1000 {
			_, _ = node.Client().Put(context.Background(), strconv.Itoa(i), value)
		}
	}()
	<-node.Broken()
	return errors.Join(node.Close(), os.RemoveAll(data), node.Err())
}

func TestAFullDiskIsSaid(t *testing.T) {
	for _, megabytes := range []string{"4", "16"} { // full at the start, and later
		t.Run(megabytes+" MB", func(t *testing.T) {
			t.Parallel()
			child := childOf(t, "fill", megabytes+" "+t.TempDir())
			// The child has mounts of its own: they go with it.
			child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
			if os.Getuid() != 0 {
				child.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
				child.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
			}
			said := fails(t, child)
			if !strings.Contains(said, "no space left on device. The disk is full: make room there") {
				t.Errorf("got %q", said)
			}
		})
	}
}
