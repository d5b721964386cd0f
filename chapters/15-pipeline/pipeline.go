package pipeline

import (
	"context"

	"listwatch/internal/observe/routine"
)

// Pipeline is both halves. They know of each other only by an address: whatever passes between
// them is HTTP.
type Pipeline struct {
	Server *Server
	Client *Client
}

// Run runs the server half, then what serves it to the network, then the client half, until ctx
// is done. Then it stops them in the opposite order, each when the one that depends on it has
// ended, and returns when nothing runs any more:
//
//	start   server half ──► front ──► client half, when the server half is ready
//	stop    client half ──► front ──► server half
//
// front serves [Server.Handler] until its ctx is done, and returns when its last handler has
// ended. [Server.EndStreams] comes before, so that streams say the true reason. The client half
// ends first, because otherwise it would take the end of every stream for a fault, and begin to
// reconnect. others are clients in this program that are not part of the client half: they run,
// and end, together with it.
func (p *Pipeline) Run(ctx context.Context, front func(ctx context.Context),
	others ...func(ctx context.Context)) {
	var server, middle, client routine.Group
	// Neither of these ends with ctx: each is cancelled when its turn has come.
	serverCtx, stopServer := context.WithCancel(context.WithoutCancel(ctx))
	frontCtx, stopFront := context.WithCancel(serverCtx)
	defer stopServer()
	defer stopFront()

	server.Go(serverCtx, "pipeline.server", p.Server.Run)
	middle.Go(frontCtx, "pipeline.front", front)
	client.Go(ctx, "pipeline.client", p.runClient)
	for _, other := range others {
		client.Go(ctx, "pipeline.other", other)
	}

	client.Wait()
	p.Server.EndStreams()
	stopFront()
	middle.Wait()
	stopServer()
	server.Wait()
}

// runClient runs the client half once the server half is ready. A client that asks earlier gets 429 and comes back a
// second later, and all of them would ask at once.
//
// Differs: the programs of a true cluster know nothing of each other, and some do come too early.
func (p *Pipeline) runClient(ctx context.Context) {
	if err := p.Server.WaitReady(ctx); err == nil { // otherwise ctx is done
		p.Client.Run(ctx)
	}
}

// WaitReady returns when every cache of the server half and every store of the client half holds its first state.
// The error is ctx's.
func (p *Pipeline) WaitReady(ctx context.Context) error {
	if err := p.Server.WaitReady(ctx); err != nil {
		return err
	}
	return p.Client.WaitReady(ctx)
}

// Snapshot is what every station says of itself.
type Snapshot struct {
	Server ServerSnapshot `json:"server"`
	Client ClientSnapshot `json:"client"`
}

// Recount lets a store report what it holds, if that is at most limit objects: the cache of a resource, or, of pods,
// the local store of the informer with that name. Others do nothing.
func (p *Pipeline) Recount(resource, subject string, limit int) {
	switch subject {
	case "informer":
		p.Client.Pods().Informer().GetIndexer().Recount(limit)
	case "cacher":
		if cache := p.Server.Cacher(resource); cache != nil {
			cache.Recount(limit)
		}
	}
}

// Snapshot asks every station for its state, one after the other. Each part is consistent in itself; the whole is only
// if nothing happens meanwhile.
func (p *Pipeline) Snapshot() Snapshot {
	return Snapshot{Server: p.Server.Snapshot(), Client: p.Client.Snapshot()}
}
