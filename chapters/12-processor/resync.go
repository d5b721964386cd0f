package processor

import "time"

// ShouldResync is asked by the reflector each time its resync period is over. It marks the
// listeners whose own period is over as syncing, and all others as not, and says whether there
// is any. What the resync then brings, updates that change nothing, is for the marked ones. It
// may wait until a notification has been handed around, but for no handler.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: (*sharedProcessor).shouldResync
func (p *SharedProcessor) ShouldResync() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	needed := false
	for _, listener := range p.listeners {
		listener.syncing = listener.resyncPeriod > 0 && !now.Before(listener.nextResync)
		if listener.syncing {
			needed = true
			listener.nextResync = now.Add(listener.resyncPeriod)
		}
	}
	return needed
}

// ResyncCheckPeriodChanged fits the periods of all listeners to a new check period.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: (*sharedProcessor).resyncCheckPeriodChanged
func (p *SharedProcessor) ResyncCheckPeriodChanged(checkPeriod time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, listener := range p.listeners {
		listener.resyncPeriod = determineResyncPeriod(listener.requestedResyncPeriod, checkPeriod)
	}
}

// determineResyncPeriod returns the resync period a listener gets when it asks for one: none if the informer does not
// check, and nothing shorter than the time between two checks.
//
// Upstream: k8s.io/client-go/tools/cache/shared_informer.go: determineResyncPeriod
func determineResyncPeriod(requested, checkPeriod time.Duration) time.Duration {
	if requested == 0 || checkPeriod == 0 {
		return 0
	}
	return max(requested, checkPeriod)
}
