package controllers

import (
	"context"
	"errors"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	listwatch "listwatch/chapters/09-listwatch"
	"listwatch/internal/observe/routine"
)

// LeaderElectorConfig describes a [LeaderElector]. All of it is required.
type LeaderElectorConfig struct {
	Client          *listwatch.RESTClient
	Namespace, Name string                    // of the lease
	Identity        string                    // of this candidate alone: two that share it both lead
	LeaseDuration   time.Duration             // how long others wait after a renewal; upstream's default is 15 s
	Lead            func(ctx context.Context) // acts as the leader until ctx is done, and returns soon after
	Clock           clock.WithTicker
}

const attempts = 5 // to renew within renewDeadline
var errHeld = errors.New("another candidate holds the lease")

// LeaderElector lets one of several copies of a program act: the one that the lease names, and that renews it. The
// others look at the lease, and one of them takes it when it has not changed for LeaseDuration.
//
// No two lead at once, although no clock is compared with another, only waited by:
//
//	leader     began ─► PUT ─────────── renewDeadline after began: stops
//	candidate             └─► saw the change ──────────── LeaseDuration after that: may take the lease
//
// The leader counts from before its request, a candidate from after it has seen the result. So the leader stops first,
// if Lead returns within a third of LeaseDuration and both clocks run at one speed. The server refuses the late request
// of an old leader by its version. If the lease is deleted or edited, two may lead until the first looks again.
//
// Upstream: k8s.io/client-go/tools/leaderelection/leaderelection.go: LeaderElector
// Differs: stops renewDeadline after its last renewal, where upstream counts from the attempt after it, a RetryPeriod
// later; reads before each write, stops at once when the lease names another, has no jitter, and releases nothing.
// Upstream takes three durations, and refuses them unless LeaseDuration > RenewDeadline > 1.2 RetryPeriod; the first
// ratio is the difference in clock speed that it tolerates. Its WatchDog fails a health check when a leader that hangs
// has not renewed.
type LeaderElector struct {
	// Set by NewLeaderElector, never changed.
	LeaderElectorConfig
	renewDeadline time.Duration // how long the leader acts after a renewal, at most

	// Owned by Run.
	observed   coordinationv1.LeaseSpec // as of the last look
	observedAt time.Time                // when it was first seen so
}

// NewLeaderElector returns a candidate that does nothing until [LeaderElector.Run].
func NewLeaderElector(config LeaderElectorConfig) *LeaderElector {
	config.Client = config.Client.WithAPIPath("/apis/coordination.k8s.io/v1")
	return &LeaderElector{LeaderElectorConfig: config, renewDeadline: config.LeaseDuration * 10 / 15}
}

// Run waits for the lease, leads, and returns when that is over: ctx is done, the lease names another, or it was not
// renewed in time. Lead has returned by then. A program that wants to lead again calls Run again.
func (e *LeaderElector) Run(ctx context.Context) {
	until, err := e.tryAcquireOrRenew(ctx, e.renewDeadline)
	for ; err != nil; until, err = e.tryAcquireOrRenew(ctx, e.renewDeadline) {
		if routine.Sleep(ctx, e.Clock, e.renewDeadline/attempts) != nil {
			return
		}
	}
	leading, stop := context.WithCancel(ctx)
	var group routine.Group
	group.Go(leading, "elector.lead", e.Lead)
	e.renew(ctx, until)
	stop()
	group.Wait()
}

// renew returns when the leader may no longer act: at until, unless a renewal moves that.
func (e *LeaderElector) renew(ctx context.Context, until time.Time) {
	for left := until.Sub(e.Clock.Now()); left > 0; left = until.Sub(e.Clock.Now()) {
		if routine.Sleep(ctx, e.Clock, min(left, e.renewDeadline/attempts)) != nil {
			return
		}
		if later, err := e.tryAcquireOrRenew(ctx, until.Sub(e.Clock.Now())); err == nil {
			until = later
		} else if errors.Is(err, errHeld) {
			return
		}
	}
}

// tryAcquireOrRenew returns until when this candidate may act. It gives up a request that takes longer than patience.
//
// Upstream: k8s.io/client-go/tools/leaderelection/leaderelection.go: (*LeaderElector).tryAcquireOrRenew
func (e *LeaderElector) tryAcquireOrRenew(ctx context.Context, patience time.Duration) (until time.Time, err error) {
	ctx, end := routine.WithTimeout(ctx, e.Clock, patience)
	defer end()
	now, lease, write := metav1.NewMicroTime(e.Clock.Now()), &coordinationv1.Lease{}, e.Client.Put().Name(e.Name)
	err = e.Client.Get().Namespace(e.Namespace).Resource("leases").Name(e.Name).Do(ctx).Into(lease)
	if apierrors.IsNotFound(err) { // of two that create it, the second is refused
		lease.Name, write = e.Name, e.Client.Post()
	} else if err != nil {
		return until, err
	}
	spec := &lease.Spec
	if !equality.Semantic.DeepEqual(*spec, e.observed) {
		e.observed, e.observedAt = *spec.DeepCopy(), e.Clock.Now() // after the answer
	}
	if holder := ptr.Deref(spec.HolderIdentity, ""); holder != e.Identity {
		lasts := time.Duration(ptr.Deref(spec.LeaseDurationSeconds, 0)) * time.Second
		if holder != "" && now.Time.Before(e.observedAt.Add(lasts)) {
			return until, errHeld
		}
		spec.LeaseTransitions = new(ptr.Deref(spec.LeaseTransitions, -1) + 1)
		spec.HolderIdentity, spec.AcquireTime = &e.Identity, &now
	}
	spec.RenewTime, spec.LeaseDurationSeconds = &now, new(int32((e.LeaseDuration+time.Second-1)/time.Second))
	return now.Add(e.renewDeadline), write.Namespace(e.Namespace).Resource("leases").Body(lease).Do(ctx).Error()
}
