package etcdnode

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
)

func startCluster(t *testing.T, dir string) *Etcd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c := require.Value(Start(ctx, Options{Dir: dir, Nodes: 3}))(t)
	t.Cleanup(func() {
		assert.NoError(t, c.Close())
	})
	return c
}

// leader returns the node that leads.
func leader(t *testing.T, c *Etcd) string {
	t.Helper()
	for range 100 {
		members := NewKeeper(t.Context(), c.Client(), false, c.Names()...).State().Members
		if i := slices.IndexFunc(members, func(m Member) bool { return m.Leader }); i >= 0 {
			return members[i].Name
		}
	}
	t.Fatal("no node leads")
	return ""
}

// dial returns a client like that of another program.
func dial(t *testing.T, c *Etcd, endpoints ...string) *clientv3.Client {
	t.Helper()
	client := require.Value(Dial(t.Context(), endpoints, c.Files()))(t)
	t.Cleanup(func() { client.Close() })
	return client
}

func (c *Etcd) run(t *testing.T, name string, up bool) {
	t.Helper()
	require.NoError(t, c.Run(t.Context(), name, up))
}

// TestAClusterOutlivesItsLeader writes all the time, kills the leader, and counts what a watcher sees.
func TestAClusterOutlivesItsLeader(t *testing.T) {
	t.Parallel()
	c := startCluster(t, t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	watched := c.Client().Watch(clientv3.WithRequireLeader(ctx), "a/", clientv3.WithPrefix(),
		clientv3.WithCreatedNotify())
	<-watched
	put(t, c.Client(), "a/before", "1")
	elsewhere := dial(t, c, c.Endpoints()...)
	dead := leader(t, c)
	c.run(t, dead, false)
	began := time.Now()
	for tried := 0; ; tried++ {
		sent := time.Now()
		_, err := elsewhere.Put(ctx, "a/after", fmt.Sprint(tried))
		if took := time.Since(sent); took > 10*time.Second { // etcd gives a write up after six
			t.Errorf("a write was answered %v after %v", err, took)
		}
		if err == nil {
			break
		}
	}
	t.Logf("the first write after the leader was gone took %v", time.Since(began))
	now := leader(t, c)
	assert.True(t, now != dead, "%s leads although it is stopped", now)
	c.run(t, dead, true)
	last := put(t, c.Client(), "a/last", "1")
	seen, at := map[int64]bool{}, int64(0)
	for at < last {
		response, ok := <-watched
		require.Equal(t, ctx.Err(), nil, "the watch stands at %d of %d", at, last)
		if !ok || response.Err() != nil { // no leader for a while: its client watches again from where it was
			watched = c.Client().Watch(ctx, "a/", clientv3.WithPrefix(), clientv3.WithRev(at+1))
			continue
		}
		for _, e := range response.Events {
			assert.False(t, seen[e.Kv.ModRevision] || e.Kv.ModRevision <= at,
				"revision %d twice, or after %d", e.Kv.ModRevision, at)
			at = e.Kv.ModRevision
			seen[at] = true
		}
	}
	if int64(len(seen)) != last-1 { // revision 1 is the empty database
		t.Errorf("saw %d of %d revisions", len(seen), last-1)
	}
	cancel()
	for range watched {
	}
}

func TestWithoutAMajorityNothingIsWritten(t *testing.T) {
	t.Parallel()
	c := startCluster(t, t.TempDir())
	put(t, c.Client(), "a", "1")
	ready := func() error { return NewKeeper(t.Context(), c.Client(), true, c.Names()...).State().Ready() }
	assert.NoError(t, ready())
	c.run(t, "etcd-1", false)
	c.run(t, "etcd-3", false)
	var err error
	told := func() bool {
		err = ready()
		return err != nil && err.Error() == "etcd has no leader: a majority of its members cannot be reached"
	}
	require.True(t, eventually.Did(20*time.Second, told), "without a majority: got %v", err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := c.Client().Put(ctx, "a", "2"); err == nil {
		t.Error("written without a majority")
	}
	c.run(t, "etcd-3", true)
	put(t, c.Client(), "a", "3")
}

func TestAClusterKeepsItsDataAndItsAddresses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := startCluster(t, dir)
	put(t, first.Client(), "a", "1")
	endpoints := first.Endpoints()
	require.NoError(t, errors.Join(first.Close(), first.Close()))
	if err := first.Run(t.Context(), "etcd-1", true); !errors.Is(err, errClosed) {
		t.Errorf("after Close: got %v", err)
	}
	second := startCluster(t, dir)
	assert.True(t, slices.Equal(second.Endpoints(), endpoints),
		"got %v, want %v as before", second.Endpoints(), endpoints)
	second.run(t, "etcd-1", false)
	response, err := dial(t, second, endpoints...).Get(t.Context(), "a") // the first endpoint takes no connection
	assert.True(t, err == nil && len(response.Kvs) == 1, "got %v, %v, want a=1", response, err)
	if _, err := Dial(t.Context(), endpoints[:1], TLSFiles{CACert: second.Files().CACert}); err == nil {
		t.Error("a client without a certificate is let in")
	}
	if err := second.Run(t.Context(), "etcd-4", true); err == nil || !strings.Contains(err.Error(),
		"there is no etcd node") {
		t.Errorf("an unknown node: got %v", err)
	}
}
