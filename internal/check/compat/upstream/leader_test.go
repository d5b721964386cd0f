package upstream

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"listwatch/internal/check/compat/program"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/routine"
)

// TestTheElectorOfClientGoLeadsAndHandsOver runs two candidates for one lease. The first leads until it ends and gives
// the lease back. Then the second leads, and the lease says so.
func TestTheElectorOfClientGoLeadsAndHandsOver(t *testing.T) {
	t.Parallel()
	v := program.StartViz(t, alone...)
	config, _ := configFor(v)
	client := must(kubernetes.NewForConfig(protobuf(config)))
	leads := make(chan string) // sent by the elector that has become the leader; never closed
	run := func(ctx context.Context, id string) {
		lock := must(resourcelock.New(resourcelock.LeasesResourceLock, "default", "elected",
			nil, client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: id}))
		elector := must(leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second,
			RetryPeriod:     200 * time.Millisecond,
			ReleaseOnCancel: true, Name: "elected",
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { leads <- id }, OnStoppedLeading: func() {},
			},
		}))
		elector.Run(ctx)
	}
	var group routine.Group
	defer group.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first, endFirst := context.WithCancel(ctx)
	group.Go(first, "test.first", func(ctx context.Context) { run(ctx, "first") })
	who := <-leads
	require.Equal(t, who, "first", "%s leads", who)
	group.Go(ctx, "test.second", func(ctx context.Context) { run(ctx, "second") })
	endFirst()
	who = <-leads
	require.Equal(t, who, "second", "%s leads after the first has ended", who)
	lease := must(client.CoordinationV1().Leases("default").Get(t.Context(), "elected", metav1.GetOptions{}))
	if holder := lease.Spec.HolderIdentity; holder == nil || *holder != "second" || *lease.Spec.LeaseTransitions != 1 {
		t.Errorf("got %+v", lease.Spec)
	}
}
