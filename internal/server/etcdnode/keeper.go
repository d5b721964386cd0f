package etcdnode

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/utils/clock"

	"listwatch/internal/observe/routine"
)

const (
	lookPeriod = time.Second
	soon       = 100 * time.Millisecond // after something was done: etcd writes what it did as late as that
	// How long a member may take to say how it is. One that is gone refuses at once. On a busy machine a connection
	// alone may take a second, and silence must not be taken for an etcd that has no leader.
	lookTimeout = 3 * time.Second

	// How often each member gives back what is free after a compaction, which is still under way at the first time. Its
	// last part is counted only by the next write.
	giveBacks = 2
)

// State is how an etcd was when it was last looked at.
type State struct {
	Members []Member `json:"members"`
}

// Member is how one member of it was.
type Member struct {
	Name   string `json:"name"`
	Leader bool   `json:"leader"`
	Bytes  int64  `json:"bytes"` // of the database file, which is what counts against the quota
	InUse  int64  `json:"inUse"` // of these, what holds data and history
	Quota  int64  `json:"quota"` // 0: it does not say
	Full   bool   `json:"full"`  // it refuses writes until space is given back
	Error  string `json:"error,omitempty"`

	err      error  // behind Error
	leader   uint64 // its id; 0: none
	revision int64
}

// Ready returns why writes would fail; nil if they would not.
func (s State) Ready() error {
	silent := 0
	var err error
	for _, m := range s.Members {
		switch {
		case m.Full:
			return rpctypes.ErrNoSpace
		case m.Error != "":
			silent++
			err = errors.New(m.Error)
		case m.leader != 0:
			return nil
		}
	}
	switch {
	case silent == len(s.Members):
		return err
	case 2*silent < len(s.Members):
		return errors.New("etcd has no leader: its members are electing one")
	}
	return errors.New("etcd has no leader: a majority of its members cannot be reached")
}

// Keeper looks each second how an etcd is. If the etcd is ours, it also keeps the database within its quota: history is
// forgotten when it has grown by an eighth of the quota beyond three quarters, what is free is given back, and the
// alarm that etcd raises when it is full is taken back when it no longer is. A full etcd refuses all writes but
// deletions.
type Keeper struct {
	// Set by NewKeeper, never changed.
	client *clientv3.Client
	ours   bool
	names  []string // of the client's endpoints

	state atomic.Pointer[State] // of the newest look; replaced by Run

	// Owned by Run.
	compactedAt int64 // the revision
	leftInUse   int64 // after the last compaction, the least that was seen
	owed        int   // how often to give back what is free, whatever etcd says of it
}

// NewKeeper returns a keeper that has looked once, and does nothing more until it is run. names are those of the
// client's endpoints; without, they are called by their addresses.
func NewKeeper(ctx context.Context, client *clientv3.Client, ours bool, names ...string) *Keeper {
	k := &Keeper{client: client, ours: ours, names: names}
	for _, endpoint := range client.Endpoints()[len(names):] {
		k.names = append(k.names, endpoint[strings.LastIndex(endpoint, "/")+1:])
	}
	k.look(ctx)
	return k
}

// State returns what was last seen. It does not block.
func (k *Keeper) State() State { return *k.state.Load() }

// Run looks at once, and then each second until ctx is done. compact makes etcd forget its history. seen is called with
// what each look has shown. Run may be called again when it has returned.
func (k *Keeper) Run(ctx context.Context, compact func(context.Context) (rev int64, err error), seen func(State)) {
	for ctx.Err() == nil {
		k.look(ctx)
		seen(k.State())
		pause := lookPeriod
		if k.ours && k.keep(ctx, k.State(), compact) {
			pause = soon
		}
		_ = routine.Sleep(ctx, clock.RealClock{}, pause) // returns early if ctx is done; the loop checks ctx
	}
}

// look asks all members together how they are. One that neither answers nor refuses takes three seconds.
func (k *Keeper) look(ctx context.Context) {
	state := State{Members: make([]Member, len(k.names))}
	var asked sync.WaitGroup
	for i, endpoint := range k.client.Endpoints() {
		asked.Go(func() { state.Members[i] = k.lookAt(ctx, k.names[i], endpoint) })
	}
	asked.Wait()
	k.state.Store(&state)
}

func (k *Keeper) lookAt(ctx context.Context, name, endpoint string) Member {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	m := Member{Name: name}
	status, err := k.status(ctx, endpoint)
	if err != nil {
		m.err, m.Error = err, fmt.Sprintf("etcd does not answer: %v", err)
		return m
	}
	m.leader, m.revision = status.Leader, status.Header.Revision
	m.Leader = m.leader == status.Header.MemberId
	m.Bytes, m.InUse, m.Quota = status.DbSize, status.DbSizeInUse, status.DbSizeQuota
	m.Full = slices.ContainsFunc(status.Errors, func(each string) bool {
		return strings.Contains(each, pb.AlarmType_NOSPACE.String())
	})
	return m
}

// status asks a member once. The client's own method asks again and again until ctx is done.
func (k *Keeper) status(ctx context.Context, endpoint string) (*pb.StatusResponse, error) {
	conn, err := k.client.Dial(endpoint)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return pb.NewMaintenanceClient(conn).Status(ctx, &pb.StatusRequest{})
}

// keep does the next thing that has become necessary, as far as this look shows, and reports whether it was done. If
// there is none, or etcd does not answer, the next look is soon enough.
func (k *Keeper) keep(ctx context.Context, state State, compact func(context.Context) (int64, error)) (done bool) {
	var err error
	for i, m := range state.Members {
		if m.Error != "" || m.Quota == 0 {
			continue
		}
		if m.Leader { // one of them speaks for all: their histories are the same
			k.leftInUse = min(k.leftInUse, m.InUse)
		}
		limit := m.Quota / 4 * 3
		grown := m.Full || m.InUse-k.leftInUse >= m.Quota/8
		switch {
		// This comes first, because it costs no history.
		case (m.Full || m.Bytes >= limit) && (m.Bytes-m.InUse >= m.Quota/16 || k.owed > 0):
			k.owed = max(0, k.owed-1)
			_, err = k.client.Defragment(ctx, k.client.Endpoints()[i])
			return err == nil
		case m.Leader && m.InUse >= limit && grown && m.revision > k.compactedAt:
			k.leftInUse, k.owed = m.InUse, len(state.Members)*giveBacks
			k.compactedAt, err = compact(ctx)
			return err == nil
		case m.Full && m.Bytes < m.Quota/16*15:
			_, err = k.client.AlarmDisarm(ctx, &clientv3.AlarmMember{}) // an empty one stands for every alarm
			return err == nil
		}
	}
	return false
}

// String says in words who leads, who does not answer, and whether writes are taken.
func (s State) String() string {
	said := []string{"it takes writes"}
	if err := s.Ready(); err != nil {
		said[0] = "it takes no writes, " + err.Error()
	}
	for _, m := range s.Members {
		switch {
		case len(s.Members) == 1:
		case m.Error != "":
			said = append(said, m.Name+" does not answer")
		case m.Leader:
			said = append(said, m.Name+" leads")
		}
	}
	return strings.Join(said, ", ")
}

// Used returns how full the fullest member is.
func (s State) Used() (percent, kB int) {
	for _, m := range s.Members {
		kB = max(kB, int(m.Bytes>>10))
		if m.Quota > 0 {
			percent = max(percent, int(100*m.Bytes/m.Quota))
		}
	}
	return percent, kB
}
