// Package routine starts goroutines that have a name and an end.
package routine

import (
	"context"
	"runtime/pprof"
	"sync"
)

// Group is a set of goroutines that one owner started and will wait for. The zero value is ready.
//
// Go must not be called once Wait may have seen the group empty, the same rule as for sync.WaitGroup.
type Group struct {
	wg sync.WaitGroup
}

// Go runs body in a goroutine that carries the pprof label routine=name, so that `dlv goroutines -group label
// routine`, profiles and stack dumps read like the cast of a play.
func (g *Group) Go(ctx context.Context, name string, body func(context.Context)) {
	g.wg.Go(func() { Do(ctx, name, body) })
}

// Do runs body in this goroutine under a name, as [Group.Go] does in one of its own.
func Do(ctx context.Context, name string, body func(context.Context)) {
	defer enter(ctx, name)()
	pprof.Do(ctx, pprof.Labels("routine", name), body)
}

// Wait returns when every goroutine of the group has ended.
func (g *Group) Wait() { g.wg.Wait() }
