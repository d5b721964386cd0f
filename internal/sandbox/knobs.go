package sandbox

import (
	"cmp"
	"context"
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
	// maxHandlerDelay bounds how long a handler may be made to take: to wait longer, add pods.
	maxHandlerDelay = time.Minute
	compactTime     = 30 * time.Second // for a compaction, if etcd does not answer
	etcdKind        = "etcd"           // of commands that act on etcd: one at a time
	switchKind      = "switch"         // of switches
	switchPatience  = 5 * time.Second  // for the undo of a story, before a switch ends it with the session
	maxKnob         = 253              // bytes of each part of a knob: the longest name of an object
)

// Knob is one thing that can be done to a running pipeline, to see what follows. What Target and Value mean depends on
// Name; [KnobNames] lists them.
type Knob struct {
	Name   string `json:"name"`
	Target string `json:"target,omitempty"`
	Value  string `json:"value,omitempty"`
}

// KnobNames are the knobs, each with what it is given.
var KnobNames = map[string]string{
	"handler.add":     "adds a handler named Target to the shared informer",
	"handler.remove":  "removes it",
	"handler.delay":   `makes the handler Target take Value for each call: "2s"; "0" for no delay`,
	"line.drop":       "breaks the open watches of the client Target, like a lost connection",
	"line.cut":        `Value "true": the client Target cannot reach the server, until "false"`,
	"line.stall":      `Value "true": the client Target reads nothing that arrives, until "false"`,
	"ring.capacity":   `fixes the history ring of the resource Target at Value events; "0": it grows and shrinks again`,
	"etcd.compact":    "makes etcd forget all history up to now",
	"etcd.restart":    "stops etcd and starts it again on its data",
	"etcd.node":       `Value "false": the node Target of etcd dies, until "true"`,
	"traffic.rate":    "writes Value changes a second, 0 to 10000, to pods made for it",
	"watchers.remove": "removes every watcher that was opened to look",
	"switch":          "restarts both halves, on the same etcd, with the flag Target at Value",
}

// Turn turns one knob. The log has the turn before its effects. An error is an apierrors.APIStatus; a
// status of 400, 404 or 409 says that nothing was done.
func (s *Sandbox) Turn(ctx context.Context, knob Knob) error {
	return s.do(ctx, s.turningOf(knob, func() error { return nil }))
}

// turningOf returns the command that turns a knob. before is called by the sandbox's goroutine when the knob was checked;
// an error of it refuses.
func (s *Sandbox) turningOf(knob Knob, before func() error) *command {
	c := &command{what: knob.Name, kind: kinds[knob.Name]}
	c.begin = func(context.Context) (func(context.Context) error, error) {
		turning, err := s.plan(knob)
		if err == nil {
			err = before()
		}
		if err != nil {
			return nil, err
		}
		s.turned(knob.String())
		return turning.begin(), nil
	}
	return c
}

// kinds are the knobs of which one is turned at a time.
var kinds = map[string]string{"etcd.compact": etcdKind, "etcd.restart": etcdKind, "etcd.node": etcdKind, "switch": switchKind}

// String returns the knob as the log says it.
func (k Knob) String() string {
	text := k.Name
	if k.Target != "" {
		text += " of " + k.Target
	}
	if k.Value != "" {
		text += " to " + k.Value
	}
	return text
}

// is reports whether two knobs are the same one, however they stand.
func (k Knob) is(other Knob) bool { return k.Name == other.Name && k.Target == other.Target }

// turning is what a knob does when it is turned: now on the sandbox's goroutine, and rest, which takes time. Either may be
// nil.
type turning struct {
	now  func()
	rest func(ctx context.Context) error
}

func (t turning) begin() (rest func(ctx context.Context) error) {
	if t.now != nil {
		t.now()
	}
	return t.rest
}

// plan checks a knob and returns what turns it. It is called by the sandbox's goroutine.
func (s *Sandbox) plan(knob Knob) (turning, error) {
	if max(len(knob.Name), len(knob.Target), len(knob.Value)) > maxKnob {
		return turning{}, apierrors.NewBadRequest(fmt.Sprintf("a knob's name, target and value have at most %d bytes each", maxKnob))
	}
	switch knob.Name {
	case "handler.add", "handler.remove", "handler.delay":
		return s.planHandler(knob)
	case "line.drop", "line.cut", "line.stall":
		return s.planConnection(knob)
	case "ring.capacity":
		return s.planRing(knob)
	case "traffic.rate":
		return s.planTraffic(knob)
	case "etcd.compact":
		return turning{rest: s.compactEtcd}, nil
	case "etcd.restart":
		if s.config.RestartEtcd == nil {
			return turning{}, apierrors.NewBadRequest("this etcd was not started by this program, which cannot restart it")
		}
		return turning{rest: s.config.RestartEtcd}, nil
	case "etcd.node":
		return s.planNode(knob)
	case "watchers.remove":
		return turning{now: s.watchers.removeAll}, nil
	case "switch":
		return s.planSwitch(knob)
	}
	return turning{}, apierrors.NewNotFound(schema.GroupResource{Resource: "knobs"}, knob.Name)
}

// standing returns how the knob stands, as the knob that would put it back; ok is false if there is nothing to put back.
func (s *Sandbox) standing(knob Knob) (now Knob, ok bool) {
	switch knob.Name {
	case "handler.add":
		return Knob{Name: "handler.remove", Target: knob.Target}, true
	case "handler.delay":
		found := s.handlers.find(knob.Target)
		if found == nil {
			return knob, false
		}
		knob.Value = found.currentDelay().String()
		return knob, true
	case "line.cut":
		knob.Value = strconv.FormatBool(s.connections.state(knob.Target).Cut)
		return knob, true
	case "line.stall":
		knob.Value = strconv.FormatBool(s.connections.state(knob.Target).Stalled)
		return knob, true
	case "ring.capacity":
		knob.Target = cmp.Or(knob.Target, "pods")
		knob.Value = strconv.Itoa(s.fixedRing(knob.Target))
		return knob, true
	case "etcd.node":
		if s.config.Cluster == nil {
			return knob, false
		}
		knob.Value = strconv.FormatBool(s.config.Cluster.Running(knob.Target))
		return knob, true
	case "traffic.rate":
		knob.Value = strconv.Itoa(s.traffic.Info().Rate)
		return knob, true
	}
	return knob, false
}

func (s *Sandbox) planHandler(knob Knob) (turning, error) {
	found := s.handlers.find(knob.Target)
	switch {
	case knob.Name == "handler.add":
		if err := s.handlers.check(knob.Target); err != nil {
			return turning{}, err
		}
		added := s.handlers.newHandler(knob.Target)
		return turning{
			now:  func() { s.handlers.reserve(added) },
			rest: func(context.Context) error { return s.handlers.register(added) },
		}, nil
	case found == nil:
		return turning{}, notFound("handlers", knob.Target)
	case knob.Name == "handler.remove":
		return turning{
			now:  func() { s.handlers.take(found) },
			rest: func(context.Context) error { return s.handlers.unregister(found) },
		}, nil
	}
	delay, err := time.ParseDuration(knob.Value)
	if err != nil || delay < 0 || delay > maxHandlerDelay {
		return turning{}, apierrors.NewBadRequest(fmt.Sprintf("%q: want a duration from 0s to %v", knob.Value, maxHandlerDelay))
	}
	return turning{now: func() { found.setDelay(delay) }}, nil
}

func (s *Sandbox) planNode(knob Knob) (turning, error) {
	cluster := s.config.Cluster
	if cluster == nil {
		return turning{}, apierrors.NewBadRequest("this etcd has no nodes that could be stopped; -etcd-nodes 3 has")
	}
	if !slices.Contains(cluster.Names(), knob.Target) {
		return turning{}, notFound("nodes", knob.Target)
	}
	up, err := strconv.ParseBool(knob.Value)
	if err != nil {
		return turning{}, apierrors.NewBadRequest(fmt.Sprintf("%q: want true or false", knob.Value))
	}
	return turning{rest: func(ctx context.Context) error { return cluster.Run(ctx, knob.Target, up) }}, nil
}

func (s *Sandbox) planConnection(knob Knob) (turning, error) {
	if knob.Target == "" {
		return turning{}, apierrors.NewBadRequest("target: want the name of a client, as it calls itself")
	}
	if !s.connections.knows(knob.Target) {
		return turning{}, notFound("clients", knob.Target)
	}
	var broken []*connectionBody
	breakAll := func(context.Context) error { closeAll(broken); return nil }
	if knob.Name == "line.drop" {
		if s.connections.streams(knob.Target) == 0 {
			return turning{}, notFound("streams", knob.Target)
		}
		return turning{now: func() { broken = s.connections.drop(knob.Target) }, rest: breakAll}, nil
	}
	on, err := strconv.ParseBool(knob.Value)
	if err != nil {
		return turning{}, apierrors.NewBadRequest(fmt.Sprintf("%q: want true or false", knob.Value))
	}
	if knob.Name == "line.stall" {
		return turning{now: func() { s.connections.stall(knob.Target, on) }}, nil
	}
	return turning{now: func() { broken = s.connections.cut(knob.Target, on) }, rest: breakAll}, nil
}

func (s *Sandbox) planRing(knob Knob) (turning, error) {
	capacity, err := strconv.Atoi(knob.Value)
	if err != nil || capacity < 0 || capacity > watchcache.MaxRingCapacity {
		return turning{}, apierrors.NewBadRequest(fmt.Sprintf("%q: want a number of events from 0 to %d", knob.Value, watchcache.MaxRingCapacity))
	}
	resource := cmp.Or(knob.Target, "pods")
	for _, each := range s.config.Pipeline.Server.Cachers() {
		if each.Resource() == resource {
			return turning{now: func() { s.fixRing(each, capacity) }}, nil
		}
	}
	return turning{}, notFound("rings", resource)
}

// fixRing fixes a history ring, or with 0 lets it move again.
func (s *Sandbox) fixRing(ring *cacher.Cacher, capacity int) {
	s.mu.Lock()
	s.fixed[ring.Resource()] = capacity
	s.mu.Unlock() // before the call: s.mu is innermost
	ring.SetRingCapacity(capacity)
}

func (s *Sandbox) fixedRing(resource string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fixed, ok := s.fixed[resource]; ok {
		return fixed
	}
	return s.config.RingCapacity
}

func (s *Sandbox) planTraffic(knob Knob) (turning, error) {
	rate, err := strconv.Atoi(knob.Value)
	if err != nil || rate < 0 || rate > MaxTraffic {
		return turning{}, apierrors.NewBadRequest(fmt.Sprintf("%q: want a number of changes a second from 0 to %d", knob.Value, MaxTraffic))
	}
	return turning{now: func() { s.traffic.setRate(rate) }}, nil
}

func (s *Sandbox) compactEtcd(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, compactTime)
	defer cancel()
	_, err := s.config.Pipeline.Server.Compact(ctx)
	return err
}

// planSwitch plans the end of the session, for another in other modes. A story that is told is ended first.
func (s *Sandbox) planSwitch(knob Knob) (turning, error) {
	if s.config.Modes == nil {
		return turning{}, apierrors.NewBadRequest("nothing here can be switched")
	}
	again, err := s.config.Modes.Switch(knob.Target, knob.Value)
	if err != nil || again == nil {
		return turning{}, err
	}
	var rests []func(context.Context) error
	return turning{
		now: func() { rests = s.endStory() },
		rest: func(ctx context.Context) error {
			s.waitFor(ctx, rests)
			return again()
		},
	}, nil
}

// waitFor does what is left of the undo of a story, no longer than the patience for it: in a held world it would stand.
func (s *Sandbox) waitFor(ctx context.Context, rests []func(context.Context) error) {
	undone := make(chan struct{}) // closed when it is; nothing is sent
	s.jobs.Go(ctx, "sandbox.undo", func(ctx context.Context) {
		defer close(undone)
		for _, rest := range rests {
			_ = rest(ctx) // the story says it, too
		}
	})
	timer := time.NewTimer(switchPatience)
	defer timer.Stop()
	select {
	case <-undone:
	case <-timer.C:
	}
}

// KnobState is how everything stands that a knob can change.
type KnobState struct {
	Handlers []HandlerInfo `json:"handlers"`
	Lines    []Connection  `json:"lines"`
	Rings    []RingInfo    `json:"rings"`
	Traffic  TrafficInfo   `json:"traffic"`
	Nodes    []NodeInfo    `json:"nodes,omitempty"`
	// UnderWay are the commands that were taken and are not over, of those that are done one at a time.
	UnderWay []string `json:"underWay,omitempty"`
}

// RingInfo is the history ring of one resource.
type RingInfo struct {
	Resource string `json:"resource"`
	Capacity int    `json:"capacity"`
	Fixed    int    `json:"fixed"` // 0: it moves
}

// NodeInfo is one node of an etcd that has several.
type NodeInfo struct {
	Name    string `json:"name"`
	Running bool   `json:"running"`
}

// Knobs returns how everything stands that a knob can change. It may be called from any goroutine.
func (s *Sandbox) Knobs() KnobState {
	state := KnobState{Handlers: s.handlers.list(), Lines: s.connections.list(), Traffic: s.traffic.Info(), UnderWay: s.underWay()}
	for _, each := range s.config.Pipeline.Server.Cachers() {
		state.Rings = append(state.Rings, RingInfo{Resource: each.Resource(), Capacity: each.RingCapacity(), Fixed: s.fixedRing(each.Resource())})
	}
	if cluster := s.config.Cluster; cluster != nil {
		for _, name := range cluster.Names() {
			state.Nodes = append(state.Nodes, NodeInfo{name, cluster.Running(name)})
		}
	}
	return state
}

func (s *Sandbox) underWay() (what []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.alone {
		what = append(what, c.what)
	}
	slices.Sort(what)
	return what
}

// CanRestartEtcd reports whether the knob etcd.restart can be turned.
func (s *Sandbox) CanRestartEtcd() bool { return s.config.RestartEtcd != nil }

func notFound(resource, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name)
}
