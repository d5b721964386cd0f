// Package routine starts named goroutines. Their starter owns the [Group], and must wait until they have ended.
package routine

import (
	"context"
	"path"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Group is a set of goroutines that one owner started and will wait for. The zero value is ready.
//
// Do not call Go while the group is empty and Wait may have been called: [sync.WaitGroup] has the same rule.
type Group struct {
	wg sync.WaitGroup
}

// Go runs body in a goroutine that carries the pprof label routine=name, so that `dlv goroutines -group label routine`,
// profiles and stack dumps show it by name.
func (g *Group) Go(ctx context.Context, name string, body func(context.Context)) {
	g.wg.Go(func() { Do(ctx, name, body) })
}

// Do runs body in the calling goroutine under a name, as [Group.Go] does in a new one.
func Do(ctx context.Context, name string, body func(context.Context)) {
	n := &named{ctx, name}
	running.Store(n, nil)
	defer running.Delete(n)
	pprof.Do(ctx, pprof.Labels("routine", name), body)
}

// running holds an entry for each call of [Do] that has not returned.
var running sync.Map // keys are *named, values nil

// named is a goroutine with a name. It should end when its context is done.
type named struct {
	ctx  context.Context
	name string
}

// Late returns the names of the goroutines that still run although their context is done, including those that only
// wait for others. The names are sorted, and none is repeated.
func Late() (names []string) {
	for n := range running.Range {
		if n := n.(*named); n.ctx.Err() != nil && !slices.Contains(names, n.name) {
			names = append(names, n.name)
		}
	}
	slices.Sort(names)
	return names
}

// Wait returns when every goroutine of the group has ended.
func (g *Group) Wait() { g.wg.Wait() }

// Every calls f after each period on clk, until ctx is done. After a long call it makes up for one period at most.
func Every(ctx context.Context, clk clock.WithTicker, period time.Duration, f func(context.Context)) {
	ticker := clk.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			f(ctx)
		}
	}
}

// Sleep waits for d on clk. If ctx is done first, it returns ctx's error at once.
func Sleep(ctx context.Context, clk clock.Clock, d time.Duration) error {
	timer := clk.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}

// Place returns the function and the line of a stack frame: "cacher.(*Cacher).dispatchEvent" and "dispatch.go:42". It
// drops the number that begins a chapter's folder.
func Place(frame runtime.Frame) (function, line string) {
	name := path.Base(strings.TrimSuffix(frame.Function, "-fm"))
	return strings.TrimLeft(name, "0123456789-"), filepath.Base(frame.File) + ":" + strconv.Itoa(frame.Line)
}
