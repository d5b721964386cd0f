package etcdnode

import (
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// raiseAlarm raises the alarm that an etcd raises after it has used up its quota.
func raiseAlarm(t *testing.T, node *Etcd) {
	t.Helper()
	conn := require.Value(node.Client().Dial(node.Client().Endpoints()[0]))(t)
	defer conn.Close()
	require.Value(pb.NewMaintenanceClient(conn).Alarm(t.Context(), &pb.AlarmRequest{
		Action: pb.AlarmRequest_ACTIVATE, Alarm: pb.AlarmType_NOSPACE}))(t)
}

func TestALookSaysHowEtcdIs(t *testing.T) {
	t.Parallel()
	node := start(t, t.TempDir())
	put(t, node.Client(), "1")
	look := func() State { return Look(t.Context(), node.Client()) }
	state := look()
	m := state.Members[0]
	assert.True(t, state.Ready() == nil && state.String() == "it takes writes" && m.Leader && m.Bytes > 0 &&
		m.Quota == 2<<30 && !m.Full, "got %+v, %v", m, state)

	raiseAlarm(t, node)
	state = look()
	assert.True(t, state.Members[0].Full && strings.Contains(state.Ready().Error(), "-data-dir") &&
		strings.HasPrefix(state.String(), "it takes no writes, because etcd has used up its quota"), "got %+v", state)
	_, err := node.Client().Put(t.Context(), "a", "2")
	assert.True(t, err != nil && strings.Contains(err.Error(), "database space exceeded"), "a write: got %v", err)

	node.stop()
	state = look()
	assert.True(t, strings.HasPrefix(state.Ready().Error(), "etcd does not answer: "), "got %+v", state)
}

func TestReadyIsWhatAMajoritySays(t *testing.T) {
	t.Parallel()
	silent, leader := Member{Name: "a", Error: "it is gone"}, Member{Name: "b", Leader: true, led: true}
	follower, alone := Member{Name: "c", led: true}, Member{Name: "c"}
	for want, members := range map[string][]Member{
		"it takes writes, and b leads":                           {silent, leader, follower},
		"it takes no writes, because etcd has no leader":         {silent, silent, alone},
		"it takes no writes, because it is gone":                 {silent, silent, silent},
		"it takes no writes, because etcd has used up its quota": {silent, {Full: true, led: true}, follower},
	} {
		got := State{Members: members}.String()
		assert.True(t, strings.HasPrefix(got, want), "got %q, want %q", got, want)
	}
}
