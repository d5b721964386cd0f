package etcdnode

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// lookTimeout is how long a member may take to answer. On a busy machine a connection alone may take a second.
const lookTimeout = 3 * time.Second

var errFull = errors.New("etcd has used up its quota: " + // etcd's own text has no advice
	"start with another -data-dir, or defragment one that is elsewhere")

// State is the state of an etcd as of one look.
type State struct {
	Members []Member `json:"members"`
}

// Member is the state of one member.
type Member struct {
	Name   string `json:"name"`
	Leader bool   `json:"leader"`
	Bytes  int64  `json:"bytes"` // of the database file, which is what counts against the quota
	Quota  int64  `json:"quota"` // 0: unknown
	Full   bool   `json:"full"`  // it refuses writes
	Error  string `json:"error,omitempty"`
	led    bool   // it knows a leader
}

// Look requests the status of all members at once. It returns after three seconds at most.
func Look(ctx context.Context, client *clientv3.Client) State {
	state := State{Members: make([]Member, len(client.Endpoints()))}
	var asked sync.WaitGroup
	for i, endpoint := range client.Endpoints() {
		asked.Go(func() { state.Members[i] = lookAt(ctx, client, endpoint) })
	}
	asked.Wait()
	return state
}

func lookAt(ctx context.Context, client *clientv3.Client, endpoint string) Member {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	m := Member{Name: endpoint[strings.LastIndex(endpoint, "/")+1:]}
	status, err := status(ctx, client, endpoint)
	if err != nil {
		m.Error = fmt.Sprintf("etcd does not answer: %v", err)
		return m
	}
	m.led, m.Leader = status.Leader != 0, status.Leader == status.Header.MemberId
	m.Bytes, m.Quota = status.DbSize, status.DbSizeQuota
	m.Full = strings.Contains(strings.Join(status.Errors, " "), pb.AlarmType_NOSPACE.String())
	return m
}

// status requests a member's status once. The client's own method repeats the request until ctx is done.
func status(ctx context.Context, client *clientv3.Client, endpoint string) (*pb.StatusResponse, error) {
	conn, err := client.Dial(endpoint)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return pb.NewMaintenanceClient(conn).Status(ctx, &pb.StatusRequest{})
}

// Ready returns why writes would fail; nil if they would not.
func (s State) Ready() error {
	why := s.Members[0].Error // if no member answers
	for _, m := range s.Members {
		switch {
		case m.Full: // every member reports it
			return errFull
		case m.led:
			return nil
		case m.Error == "":
			why = "etcd has no leader"
		}
	}
	return errors.New(why)
}

// String describes whether etcd takes writes, and which of several members leads.
func (s State) String() string {
	if err := s.Ready(); err != nil {
		return "it takes no writes, because " + err.Error()
	}
	for _, m := range s.Members {
		if m.Leader && len(s.Members) > 1 {
			return "it takes writes, and " + m.Name + " leads"
		}
	}
	return "it takes writes"
}
