package mvcc_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.uber.org/goleak"
	"k8s.io/utils/clock"

	etcd3 "listwatch/chapters/02-etcd3"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/eventually"
	"listwatch/internal/check/require"
	"listwatch/internal/server/etcdnode"
	"listwatch/internal/server/mvcc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The contract: the in-memory store answers as etcd does. Each script runs against both, and records the answers line
// by line. The lines must be equal.

// session runs a script's operations on one client, and records the answers.
type session struct {
	t      *testing.T
	client etcd3.Client
	ctx    context.Context
	lines  []string
}

func (s *session) say(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

func text(kv *mvccpb.KeyValue) string {
	if kv == nil {
		return "none"
	}
	return fmt.Sprintf("%s=%s@%d/%d#%d", kv.Key, kv.Value, kv.ModRevision, kv.CreateRevision, kv.Version)
}

// put returns the store's revision after a write that succeeded, or else 0. delete does the same.
func (s *session) put(key, value string, expected int64) int64 {
	r, err := s.client.OptimisticPut(s.ctx, key, []byte(value), expected, kubernetes.PutOptions{GetOnFailure: true})
	s.say("put %s=%s if %d: %v %s at %d, %v", key, value, expected, r.Succeeded, text(r.KV), r.Revision, err)
	return made(r.Succeeded, r.Revision)
}

func (s *session) delete(key string, expected int64) int64 {
	r, err := s.client.OptimisticDelete(s.ctx, key, expected, kubernetes.DeleteOptions{GetOnFailure: true})
	s.say("delete %s if %d: %v %s at %d, %v", key, expected, r.Succeeded, text(r.KV), r.Revision, err)
	return made(r.Succeeded, r.Revision)
}

func made(succeeded bool, rev int64) int64 {
	if !succeeded {
		return 0
	}
	return rev
}

func (s *session) get(key string, rev int64) {
	r, err := s.client.Get(s.ctx, key, kubernetes.GetOptions{Revision: rev})
	s.say("get %s at %d: %s at %d, %v", key, rev, text(r.KV), r.Revision, err)
}

func (s *session) list(prefix string, opts kubernetes.ListOptions) {
	r, err := s.client.List(s.ctx, prefix, opts)
	var items []string
	for _, kv := range r.Kvs {
		items = append(items, text(kv))
	}
	s.say("list %s %+v: [%s] of %d at %d, %v", prefix, opts, strings.Join(items, " "), r.Count, r.Revision, err)
}

func (s *session) count(prefix string) {
	n, err := s.client.Count(s.ctx, prefix, kubernetes.CountOptions{})
	s.say("count %s: %d, %v", prefix, n, err)
}

func (s *session) compact(rev int64) error {
	err := s.client.CompactHistory(s.ctx, rev)
	s.say("compact %d: %v", rev, err)
	return err
}

// watch records the events of a watch up to revision last, or the watch's error.
func (s *session) watch(key string, last int64, opts ...clientv3.OpOption) {
	ctx, cancel := context.WithCancel(s.ctx)
	responses := s.client.Watch(ctx, key, opts...)
	s.say("watch %s up to %d", key, last)
	for response := range responses {
		if err := response.Err(); err != nil {
			s.say("  ends: %v, compacted %v, canceled %v", err, response.CompactRevision, response.Canceled)
			continue // the channel must be closed next
		}
		for _, e := range response.Events {
			s.say("  %s %s, was %s, create %v, modify %v", e.Type, text(e.Kv), text(e.PrevKv), e.IsCreate(),
				e.IsModify())
			if e.Kv.ModRevision == last {
				cancel()
			}
		}
	}
	cancel()
}

// progress watches key, and records the revision of a progress notification that it requests.
func (s *session) progress(key string) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	responses := s.client.Watch(ctx, key, clientv3.WithCreatedNotify(), clientv3.WithRev(1))
	for response := range responses {
		if ctx.Err() != nil {
			continue // answers an earlier request: each response but a progress notification causes one
		}
		if response.IsProgressNotify() {
			s.say("progress %s: %d", key, response.Header.Revision)
			cancel()
			continue
		}
		assert.NoError(s.t, s.client.RequestProgress(ctx))
	}
}

// progressBeside records the first progress notification of a watch of key. The same stream has another watch, which
// begins at the next revision, next. progressBeside requests progress before that revision exists, and afterwards.
func (s *session) progressBeside(key string, next int64) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	created := clientv3.WithCreatedNotify()
	quiet := s.client.Watch(ctx, "/quiet", clientv3.WithRev(next), created)
	responses := s.client.Watch(ctx, key, clientv3.WithRev(next-1), clientv3.WithFilterPut(), created)
	ask := func() {
		assert.NoError(s.t, s.client.RequestProgress(ctx))
	}
	ask()
	s.put("/elsewhere", "x", 0)
	for {
		ask() // again, because etcd may still be registering the watches
		select {
		case <-quiet:
		case response := <-responses:
			if response.IsProgressNotify() {
				s.say("progress %s beside a watch from %d: %d", key, next, response.Header.Revision)
				return
			}
		case <-time.After(50 * time.Millisecond): // then the loop requests progress again
		}
	}
}

// sameAnswers runs script against the store and against etcd, and compares the answers.
func sameAnswers(t *testing.T, script func(*session)) {
	t.Helper()
	node := require.Value(etcdnode.Start(context.Background(), etcdnode.Options{Dir: t.TempDir()}))(t)
	defer node.Close()
	etcd := &session{t: t, client: etcd3.NewClient(node.Client()), ctx: t.Context()}
	script(etcd)
	memory := &session{t: t, client: mvcc.New(clock.RealClock{}), ctx: t.Context()}
	script(memory)
	assert.Equal(t, "", cmp.Diff(etcd.lines, memory.lines), "answers (-etcd +memory):\n")
}

func TestWatchesAnswerAsEtcd(t *testing.T) {
	sameAnswers(t, func(s *session) {
		s.put("/p/a", "1", 0)   // revision 2
		s.put("/p/a", "2", 2)   // revision 3
		s.put("/q", "other", 0) // revision 4
		s.delete("/p/a", 3)     // revision 5
		s.put("/p/a", "3", 0)   // revision 6
		s.put("/p/b", "1", 0)   // revision 7
		s.watch("/p/", 7, clientv3.WithPrefix(), clientv3.WithRev(1), clientv3.WithPrevKV())
		s.watch("/p/", 7, clientv3.WithPrefix(), clientv3.WithRev(4))
		s.watch("/p/a", 6, clientv3.WithRev(3), clientv3.WithPrevKV())
		s.progress("/p/a")
		s.progressBeside("/p/a", 8)
	})
}

func TestLeasesAnswerAsEtcd(t *testing.T) {
	sameAnswers(t, func(s *session) {
		id, err := s.client.GrantLease(s.ctx, 2*time.Second)
		s.say("grant: %v, %v", id != clientv3.NoLease, err)
		for _, key := range []string{"/p/a", "/p/b"} {
			r, err := s.client.OptimisticPut(s.ctx, key, []byte("1"), 0, kubernetes.PutOptions{LeaseID: id})
			s.say("put %s: %v at %d, %v", key, r.Succeeded, r.Revision, err)
		}
		s.put("/p/b", "2", 3) // removes the key from the lease
		eventually.Holds(s.t, "the end of the lease", func() bool {
			r, err := s.client.Get(s.ctx, "/p/a", kubernetes.GetOptions{})
			return err != nil || r.KV == nil
		})
		s.get("/p/a", 0)
		s.get("/p/b", 0)
		r, err := s.client.OptimisticPut(s.ctx, "/p/c", []byte("1"), 0, kubernetes.PutOptions{LeaseID: id})
		s.say("put under a lease that has ended: %v, %v", r.Succeeded, errors.Is(err, rpctypes.ErrLeaseNotFound))
		s.watch("/p/", 5, clientv3.WithPrefix(), clientv3.WithRev(1), clientv3.WithPrevKV())
	})
}

func TestRandomHistoriesAnswerAsEtcd(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			sameAnswers(t, func(s *session) { random(s, rand.New(rand.NewPCG(seed, seed))) })
		})
	}
}

// random runs a few hundred random operations. The same seed and the same answers lead to the same operations.
func random(s *session, r *rand.Rand) {
	last := map[string]int64{} // probable revision of each key
	rev, compacted := s.put("/q", "far", 0), int64(0)
	for n := range 300 {
		key := fmt.Sprintf("/p/%c", 'a'+r.IntN(6))
		expected := last[key]
		if r.IntN(8) == 0 {
			expected++ // this expected revision is probably wrong
		}
		switch r.IntN(12) {
		case 0:
			s.get(key, r.Int64N(rev+2))
		case 1:
			s.list("/p/", kubernetes.ListOptions{Revision: r.Int64N(rev + 2), Limit: r.Int64N(4), Continue: key})
		case 2: // this revision may be old, or not exist yet
			target := compacted + r.Int64N(rev-compacted+3)
			if n > 50 && r.IntN(4) == 0 && s.compact(target) == nil {
				compacted = target
			}
		case 3, 4:
			if at := s.delete(key, expected); at > 0 {
				rev, last[key] = at, 0
			}
		case 5:
			s.count([]string{"/p/", "/", "/nothing"}[n%3])
		default:
			if at := s.put(key, fmt.Sprint(n), expected); at > 0 {
				rev, last[key] = at, at
			}
		}
	}
	s.list("/nothing/", kubernetes.ListOptions{})
	rev = s.put("/p/z", "last", 0)
	for from := max(compacted-1, 1); from <= compacted+1; from++ { // revisions before compacted are gone
		s.watch("/p/", rev, clientv3.WithPrefix(), clientv3.WithRev(from), clientv3.WithPrevKV())
	}
}

func TestFailedWatchesEndWithEtcdsError(t *testing.T) {
	store := mvcc.New(clock.RealClock{})
	responses := store.Watch(t.Context(), "/p/", clientv3.WithPrefix())
	store.Put("/p/a", []byte("1"))
	store.FailWatches(rpctypes.ErrorDesc(rpctypes.ErrNoLeader))
	assert.Equal(t, 1, len((<-responses).Events), "events of what happened before")
	last := <-responses
	assert.True(t, errors.Is(last.Err(), rpctypes.ErrNoLeader), "got %v, want no leader", last.Err())
	_, open := <-responses
	assert.False(t, open, "the channel is still open")
	assert.Equal(t, 3, store.Put("/p/a", []byte("2")), "got revision")
}

func TestWatchFromTheFutureWaitsForIt(t *testing.T) {
	store := mvcc.New(clock.RealClock{})
	ctx, cancel := context.WithCancel(t.Context())
	responses := store.Watch(ctx, "/p/", clientv3.WithPrefix(), clientv3.WithRev(4))
	for range 3 {
		store.Put("/p/a", nil) // revisions 2, 3, 4
	}
	if response := <-responses; len(response.Events) != 1 || response.Events[0].Kv.ModRevision != 4 {
		t.Errorf("got %+v, want revision 4 only", response)
	}
	cancel()
	for range responses {
	}
}

func TestARestoredStoreCountsOnFromItsBackup(t *testing.T) {
	store := mvcc.New(clock.RealClock{})
	store.Put("/p/a", []byte("first")) // revision 2
	store.Put("/p/a", []byte("second"))
	store.Put("/p/b", nil)
	restored := store.Until(2)
	kept, err := restored.Get(t.Context(), "/p/a", kubernetes.GetOptions{})
	lost, errLost := restored.Get(t.Context(), "/p/b", kubernetes.GetOptions{})
	assert.True(t, err == nil && errLost == nil && string(kept.KV.Value) == "first" && kept.KV.ModRevision == 2 &&
		lost.KV == nil, "got %v and %v (%v, %v), want the first value at 2, and nothing", kept.KV, lost.KV, err,
		errLost)
	if rev, other := restored.Put("/p/c", nil), store.Put("/p/c", nil); rev != 3 || other != 5 {
		t.Errorf("the next write is revision %d, and that of the other store %d, want 3 and 5", rev, other)
	}
}
