package routine

import "context"

// Pool runs bodies in goroutines, as [Group.Go] does, and gives a goroutine whose body has ended the next one. What that
// saves is the growing of stacks: a body that goes deep, as decoding does, spends nearly half of its time on it in a
// goroutine of its own. docs/COSTS.md has the figures.
type Pool struct {
	// Set by NewPool, never changed.
	group *Group
	name  string
	limit int

	bodies chan func(context.Context) // sent by Go, never closed; 0: handed to a goroutine that has nothing to do

	started int // owned by the caller of Go
}

// NewPool returns a pool of at most limit goroutines, which belong to group and are labelled with name.
func NewPool(group *Group, name string, limit int) *Pool {
	return &Pool{group: group, name: name, limit: limit, bodies: make(chan func(context.Context))}
}

// Go runs body in a goroutine. While limit bodies are running it waits; if ctx is done meanwhile, body is not run. It is
// called by one goroutine.
func (p *Pool) Go(ctx context.Context, body func(context.Context)) {
	select {
	case p.bodies <- body:
		return
	default:
	}
	if p.started < p.limit {
		p.started++
		p.group.Go(ctx, p.name, p.run)
	}
	select {
	case <-ctx.Done():
	case p.bodies <- body:
	}
}

func (p *Pool) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case body := <-p.bodies:
			body(ctx)
		}
	}
}
