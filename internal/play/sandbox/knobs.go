package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	watchcache "listwatch/chapters/04-watchcache"
	cacher "listwatch/chapters/06-cacher"
)

const (
	maxDelay       = time.Minute      // maximum delay of a handler
	compactTime    = 30 * time.Second // maximum wait for a compaction by etcd
	switchPatience = 5 * time.Second  // a story's time to undo its changes before a switch ends the session
	maxKnob        = 253              // maximum bytes in each part of a knob, as in the name of an object
	etcdKind       = "etcd"           // the kind of commands that act on etcd
)

// Knob is one change to a running pipeline. [Sandbox.Knobs] describes, for each Name, what Target and Value mean.
type Knob struct {
	Name   string `json:"name"`
	Target string `json:"target"`
	Value  string `json:"value"`
}

// row is one knob of the table. check and undo may be nil.
type row struct {
	help   string
	kind   string             // only one command of a kind runs at a time; "": any number
	whyNot string             // the reason why the knob cannot be turned here; "": the knob can be turned
	check  func(k Knob) error // refuses a wrong target or value
	turn   turn
	undo   func(k Knob) Knob // returns the knob that would restore the current state
}

// turn turns a knob. Like a [command], it has the machine to itself until it calls begun.
type turn func(ctx context.Context, k Knob, begun func()) error

// now returns a turn that only calls set, which must not block.
func now(set func(k Knob)) turn {
	return func(_ context.Context, k Knob, _ func()) error {
		set(k)
		return nil
	}
}

// table returns all knobs, by name.
func (s *Sandbox) table() map[string]row {
	unless := func(can bool, whyNot string) string {
		if can {
			return ""
		}
		return whyNot
	}
	return map[string]row{"handler.add": {
		help:  "adds a handler named Target to the shared informer",
		check: func(k Knob) error { return s.handlers.check(k.Target) },
		turn: func(_ context.Context, k Knob, begun func()) error {
			added := s.handlers.reserve(k.Target)
			begun()
			return added.register()
		},
		undo: func(k Knob) Knob { return Knob{Name: "handler.remove", Target: k.Target} },
	}, "handler.remove": {
		help:  "removes the handler Target",
		check: s.checkHandler,
		turn: func(_ context.Context, k Knob, begun func()) error {
			taken := s.handlers.find(k.Target)
			s.handlers.take(taken)
			begun()
			return taken.unregister()
		},
	}, "handler.delay": {
		help: `makes the handler Target take Value for each call: "2s"; "0" for no delay`,
		check: func(k Knob) error {
			if delay, err := time.ParseDuration(k.Value); err != nil || delay < 0 || delay > maxDelay {
				return badRequest("%q: want a duration from 0s to %v", k.Value, maxDelay)
			}
			return s.checkHandler(k)
		},
		turn: now(func(k Knob) { s.handlers.find(k.Target).setDelay(k.duration()) }),
		undo: func(k Knob) Knob { return k.at(s.handlers.find(k.Target).pace.Load().delay) },
	}, "line.drop": {
		help: "breaks the open watches of the client Target, like a lost connection",
		check: func(k Knob) error {
			if s.config.Connections.of(k.Target).Streams == 0 {
				return notFound("streams", k.Target)
			}
			return nil
		},
		turn: now(s.config.Connections.turn),
	}, "line.cut": {
		help:  `Value "true": the client Target cannot reach the server, until "false"`,
		check: s.checkLine,
		turn:  now(s.config.Connections.turn),
		undo:  func(k Knob) Knob { return k.at(s.config.Connections.of(k.Target).Cut) },
	}, "line.stall": {
		help:  `Value "true": the client Target reads nothing that arrives, until "false"`,
		check: s.checkLine,
		turn:  now(s.config.Connections.turn),
		undo:  func(k Knob) Knob { return k.at(s.config.Connections.of(k.Target).Stalled) },
	}, "ring.capacity": {
		help: `fixes the history ring of the resource Target at Value events; "0": it grows and shrinks again`,
		check: func(k Knob) error {
			if s.ring(k.Target) == nil {
				return notFound("rings", k.Target)
			}
			return k.checkNumber(watchcache.MaxRingCapacity)
		},
		turn: now(func(k Knob) { s.ring(k.Target).SetRingCapacity(k.number()) }),
		undo: func(k Knob) Knob { _, fixed := s.ring(k.Target).RingCapacity(); return k.at(fixed) },
	}, "traffic.rate": {
		help:  "writes Value changes a second to pods of its own; GET shows the maximum",
		check: func(k Knob) error { return k.checkNumber(s.traffic.most) },
		turn:  now(func(k Knob) { s.traffic.setRate(k.number()) }),
		undo:  func(k Knob) Knob { return k.at(s.traffic.info().Rate) },
	}, "watchers.remove": {
		help: "removes every watcher that viewers have opened",
		turn: now(func(Knob) { s.removeWatchers() }),
	}, "etcd.compact": {
		help: "makes etcd forget all history up to now", kind: etcdKind,
		turn: func(ctx context.Context, _ Knob, begun func()) error {
			begun()
			ctx, cancel := context.WithTimeout(ctx, compactTime)
			defer cancel()
			_, err := s.config.Pipeline.Server.Compact(ctx)
			return err
		},
	}, "etcd.restart": {
		help: "stops etcd and starts it again on its data", kind: etcdKind,
		whyNot: unless(s.config.RestartEtcd != nil,
			"this etcd was not started by this program, which cannot restart it"),
		turn: func(ctx context.Context, _ Knob, begun func()) error {
			begun()
			return s.config.RestartEtcd(ctx)
		},
	}, "switch": {
		help: "restarts both halves, on the same etcd, with the flag Target at Value", kind: "switch",
		whyNot: unless(s.config.Switcher != nil, "nothing here can be switched"),
		check:  func(k Knob) error { _, err := s.config.Switcher.Switch(k.Target, k.Value); return err },
		turn:   s.turnSwitch,
	}}
}

// Turn turns one knob. The end of the story, if there is one, restores the knob's state, if the knob has an undo. The
// log has the turn before its effects. Errors: 400, 404, 409 or 429 if it is refused, 503 if it fails or is cut short.
func (s *Sandbox) Turn(ctx context.Context, story *Run, knob Knob) (Receipt, error) {
	return s.do(ctx, &order{name: knob.Name, kind: s.knobs[knob.Name].kind, story: story,
		do: func(ctx context.Context, begun func()) error { return s.turn(ctx, story, knob, begun) }})
}

// turn is the command that turns a knob and logs the turn. Before a knob's first turn it saves the knob's state.
func (s *Sandbox) turn(ctx context.Context, story *Run, knob Knob, begun func()) error {
	found, err := s.check(knob)
	if err != nil {
		return err
	}
	if found.undo != nil {
		back := found.undo(knob)
		s.remember(&s.before, back)
		if story != nil {
			s.remember(&story.before, back)
		}
	}
	s.turned(knob)
	return found.turn(ctx, knob, begun)
}

// remember adds back, the knob that restores a state, unless before has one with its name and target. It removes knobs
// whose targets are gone.
func (s *Sandbox) remember(before *[]Knob, back Knob) {
	*before = slices.DeleteFunc(*before, func(k Knob) bool { _, err := s.check(k); return err != nil })
	if !slices.ContainsFunc(*before, func(k Knob) bool { return k.Name == back.Name && k.Target == back.Target }) {
		*before = append(*before, back)
	}
}

// putBack begins to restore the states in before, the newest first, each by a command of its own. The returned function
// waits until these commands are over, and returns their errors, joined.
func (s *Sandbox) putBack(ctx context.Context, before []Knob) (wait func() error) {
	ends, n := make(chan error, len(before)), 0 // sent by each command; has room for all commands
	for _, knob := range slices.Backward(before) {
		found, err := s.check(knob)
		if err != nil || found.undo != nil && found.undo(knob) == knob {
			continue // the target is gone, or has its old state
		}
		s.turned(knob)
		n++
		s.start(ctx, func(ctx context.Context, begun func()) error { return found.turn(ctx, knob, begun) },
			func(err error) { ends <- err })
	}
	return func() (err error) {
		for range n {
			err = errors.Join(err, <-ends)
		}
		return err
	}
}

// check returns the row of a knob, or the reason why the knob cannot be turned.
func (s *Sandbox) check(k Knob) (row, error) {
	found, known := s.knobs[k.Name]
	switch {
	case max(len(k.Name), len(k.Target), len(k.Value)) > maxKnob:
		return row{}, badRequest("a knob's name, target and value have at most %d bytes each", maxKnob)
	case !known:
		return row{}, notFound("knobs", k.Name)
	case found.whyNot != "":
		return row{}, badRequest("%s", found.whyNot)
	case found.check != nil:
		return found, found.check(k)
	}
	return found, nil
}

func (s *Sandbox) checkHandler(k Knob) error {
	if s.handlers.find(k.Target) == nil {
		return notFound("handlers", k.Target)
	}
	return nil
}

func (s *Sandbox) checkLine(k Knob) error {
	switch {
	case k.Target == "":
		return badRequest("target: want the name of a client, as it calls itself")
	case s.config.Connections.of(k.Target).UserAgent == "":
		return notFound("clients", k.Target)
	}
	if _, err := strconv.ParseBool(k.Value); err != nil {
		return badRequest("%q: want true or false", k.Value)
	}
	return nil
}

// ring returns the cacher of a resource ("" means pods); nil: there is none.
func (s *Sandbox) ring(resource string) *cacher.Cacher {
	return s.config.Pipeline.Server.Cacher(cmp.Or(resource, "pods"))
}

// turnSwitch ends the session, for a new one with other switches; if no switch would change, it does nothing. It first
// cancels the current story and waits for the undo, but at most switchPatience: in a held world the undo cannot end.
func (s *Sandbox) turnSwitch(ctx context.Context, k Knob, begun func()) error {
	again, err := s.config.Switcher.Switch(k.Target, k.Value)
	if err != nil || again == nil {
		return err
	}
	undone := s.endStory()
	begun()
	timer := time.NewTimer(switchPatience)
	defer timer.Stop()
	select {
	case <-undone:
	case <-timer.C:
	}
	return again()
}

// ---- the value of a knob

// at returns the knob with another value.
func (k Knob) at(value any) Knob {
	k.Value = fmt.Sprint(value)
	return k
}

func (k Knob) checkNumber(most int) error {
	if n, err := strconv.Atoi(k.Value); err != nil || n < 0 || n > most {
		return badRequest("%q: want a number from 0 to %d", k.Value, most)
	}
	return nil
}

// isTrue, number and duration return the parsed value, or a zero value if it has another form.
func (k Knob) isTrue() bool            { on, _ := strconv.ParseBool(k.Value); return on }
func (k Knob) number() int             { n, _ := strconv.Atoi(k.Value); return n }
func (k Knob) duration() time.Duration { d, _ := time.ParseDuration(k.Value); return d }

func badRequest(format string, args ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}

func notFound(resource, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name)
}

// ---- the state

// KnobState describes the knobs, and the state that they can change.
type KnobState struct {
	Names    map[string]string `json:"names"`            // a description of each knob
	WhyNot   map[string]string `json:"whyNot,omitempty"` // the reasons why knobs cannot be turned here, by name
	Handlers []HandlerInfo     `json:"handlers"`
	Lines    []Connection      `json:"lines"`
	Rings    []RingInfo        `json:"rings"`
	Traffic  TrafficInfo       `json:"traffic"`
	Switches map[string]string `json:"switches"` // the present values, by name
	Etcd     any               `json:"etcd"`
}

// RingInfo describes the history ring of one resource.
type RingInfo struct {
	Resource string `json:"resource"`
	Capacity int    `json:"capacity"`
	Fixed    int    `json:"fixed"` // the fixed capacity; 0: the ring grows and shrinks
}

// Knobs returns the knobs' descriptions, and the state that they can change. It may be called from any goroutine.
func (s *Sandbox) Knobs() KnobState {
	state := KnobState{
		Names: map[string]string{}, WhyNot: map[string]string{}, Handlers: s.handlers.info(),
		Lines: s.config.Connections.list(), Traffic: s.traffic.info(),
	}
	for name, each := range s.knobs {
		state.Names[name] = each.help
		if each.whyNot != "" {
			state.WhyNot[name] = each.whyNot
		}
	}
	for _, each := range s.config.Pipeline.Server.Cachers() {
		capacity, fixed := each.RingCapacity()
		state.Rings = append(state.Rings, RingInfo{each.Resource(), capacity, fixed})
	}
	if s.config.Switcher != nil {
		state.Switches = s.config.Switcher.Now()
	}
	if s.config.Etcd != nil {
		state.Etcd = s.config.Etcd()
	}
	return state
}
