package controllers

import (
	"context"
	"errors"
	"math"
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
	Identity        string                    // of this candidate and of no other
	LeaseDuration   time.Duration             // how long others wait after a renewal; upstream's default is 15 s
	Lead            func(ctx context.Context) // acts as the leader until ctx is done, and returns soon after
	Clock           clock.WithTicker
}

var errHeld = errors.New("another candidate holds the lease")

// LeaderElector lets one of several copies of a program act: the one that the lease names. The leader renews the lease
// while it acts. The others look at it, and one of them takes it when it has not changed for LeaseDuration.
//
// No two lead at once, although no clock is compared with another, only waited by:
//
//	leader     began ─► PUT ─────────── renewDeadline after began: stops
//	candidate             └─► saw the change ──────────── LeaseDuration after that: may take the lease
//
// The leader counts from before its request, a candidate from after it has seen the result. So the leader stops first,
// if Lead returns within a third of LeaseDuration and both clocks run at one speed. A late request of the old leader
// harms nothing: the lease has another resourceVersion, so the server refuses it. The promise does not survive a lease
// that is deleted or written by hand: two may lead until the first looks again.
//
// Upstream: k8s.io/client-go/tools/leaderelection/leaderelection.go: LeaderElector
// Differs: reads before each write, stops at once when the lease names another, has no jitter, and releases nothing.
type LeaderElector struct {
	// Set by NewLeaderElector, never changed.
	config        LeaderElectorConfig
	renewDeadline time.Duration // how long the leader acts after a renewal, at most
	retryPeriod   time.Duration // between two attempts, to lead or to renew

	// Owned by Run.
	observed   coordinationv1.LeaseSpec // as of the last look
	observedAt time.Time                // when it was first seen so
}

// NewLeaderElector returns a candidate that does nothing until [LeaderElector.Run].
func NewLeaderElector(config LeaderElectorConfig) *LeaderElector {
	config.Client = config.Client.WithAPIPath("/apis/coordination.k8s.io/v1")
	return &LeaderElector{config: config, renewDeadline: config.LeaseDuration * 10 / 15,
		retryPeriod: config.LeaseDuration * 2 / 15}
}

// Run waits for the lease, leads, and returns when that is over: ctx is done, the lease names another, or it was not
// renewed in time. Lead has returned by then. A program that wants to lead again calls Run again.
func (e *LeaderElector) Run(ctx context.Context) {
	began := e.config.Clock.Now()
	for ; e.tryAcquireOrRenew(ctx, e.renewDeadline) != nil; began = e.config.Clock.Now() {
		if routine.Sleep(ctx, e.config.Clock, e.retryPeriod) != nil {
			return
		}
	}
	leading, stop := context.WithCancel(ctx)
	var group routine.Group
	group.Go(leading, "elector.lead", e.config.Lead)
	e.renew(ctx, began.Add(e.renewDeadline))
	stop()
	group.Wait()
}

// renew returns when the leader may no longer act: at deadline, unless a renewal moves that.
func (e *LeaderElector) renew(ctx context.Context, deadline time.Time) {
	clk := e.config.Clock
	for left := deadline.Sub(clk.Now()); left > 0; left = deadline.Sub(clk.Now()) {
		if routine.Sleep(ctx, clk, min(left, e.retryPeriod)) != nil {
			return
		}
		began := clk.Now()
		if err := e.tryAcquireOrRenew(ctx, deadline.Sub(began)); err == nil {
			deadline = began.Add(e.renewDeadline)
		} else if errors.Is(err, errHeld) {
			return
		}
	}
}

// tryAcquireOrRenew returns nil if the lease is this candidate's now. It gives up when patience is over: what has
// become of its request is for the next look to see.
//
// Upstream: k8s.io/client-go/tools/leaderelection/leaderelection.go: (*LeaderElector).tryAcquireOrRenew
func (e *LeaderElector) tryAcquireOrRenew(ctx context.Context, patience time.Duration) error {
	ctx, end := routine.WithTimeout(ctx, e.config.Clock, patience)
	defer end()
	now, lease := metav1.NewMicroTime(e.config.Clock.Now()), &coordinationv1.Lease{}
	client, ns, name := e.config.Client, e.config.Namespace, e.config.Name
	write := client.Put().Name(name)
	err := client.Get().Namespace(ns).Resource("leases").Name(name).Do(ctx).Into(lease)
	if apierrors.IsNotFound(err) { // of two that create it, the second is refused
		lease.Name, write = name, client.Post()
	} else if err != nil {
		return err
	}
	spec := &lease.Spec
	if !equality.Semantic.DeepEqual(*spec, e.observed) {
		e.observed, e.observedAt = *spec.DeepCopy(), e.config.Clock.Now() // after the answer
	}
	if holder := ptr.Deref(spec.HolderIdentity, ""); holder != e.config.Identity {
		lasts := time.Duration(ptr.Deref(spec.LeaseDurationSeconds, 0)) * time.Second
		if holder != "" && now.Time.Before(e.observedAt.Add(lasts)) {
			return errHeld
		}
		spec.LeaseTransitions = new(ptr.Deref(spec.LeaseTransitions, -1) + 1)
		spec.HolderIdentity, spec.AcquireTime = &e.config.Identity, &now
	}
	spec.RenewTime, spec.LeaseDurationSeconds = &now, new(int32(math.Ceil(e.config.LeaseDuration.Seconds())))
	return write.Namespace(ns).Resource("leases").Body(lease).Do(ctx).Error()
}
