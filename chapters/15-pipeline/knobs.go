package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"listwatch/internal/probe"
)

// maxHandlerDelay bounds how long a handler may be made to take: whoever wants to wait longer can add pods.
const maxHandlerDelay = time.Minute

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
	"handler.delay":   `makes the handler Target take Value for each call: "2s", "0" for no time at all`,
	"line.drop":       "breaks the open watches of the client Target, as a connection that is lost",
	"line.cut":        `Value "true": the client Target cannot reach the server, until "false"`,
	"line.stall":      `Value "true": the client Target reads nothing that arrives, until "false"`,
	"ring.capacity":   `fixes the history ring of the resource Target at Value events; "0": it moves again`,
	"etcd.compact":    "makes etcd forget all history up to now",
	"etcd.restart":    "stops etcd and starts it again on its data",
	"traffic.rate":    "writes Value changes a second to pods made for it, 0 to 10000",
	"watchers.remove": "removes every watcher that was opened to look",
}

// Turn turns one knob. That it was turned stands in the log before its effects do. An error is an apierrors.APIStatus if
// the knob is to blame, and then nothing was done.
func (p *Pipeline) Turn(ctx context.Context, knob Knob) error {
	turn, err := p.turner(knob)
	if err != nil {
		return err
	}
	p.turned(knob.String())
	return turn(ctx)
}

// turned says in the log that something was turned.
func (p *Pipeline) turned(text string) {
	p.Server.probe.Text(probe.KnobTurned, text, "", 0)
}

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

// turner checks a knob and returns what turns it.
func (p *Pipeline) turner(knob Knob) (func(context.Context) error, error) {
	switch knob.Name {
	case "handler.add", "handler.remove", "handler.delay":
		return p.handlerTurner(knob)
	case "line.drop", "line.cut", "line.stall":
		return p.lineTurner(knob)
	case "ring.capacity":
		return p.ringTurner(knob)
	case "traffic.rate":
		return p.trafficTurner(knob)
	case "etcd.compact":
		return p.compactEtcd, nil
	case "etcd.restart":
		if p.RestartEtcd == nil {
			return nil, apierrors.NewBadRequest("this etcd is not ours to restart")
		}
		return p.RestartEtcd, nil
	case "watchers.remove":
		return p.removeWatchers, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "knobs"}, knob.Name)
}

func (p *Pipeline) handlerTurner(knob Knob) (func(context.Context) error, error) {
	handlers := p.Client.Handlers
	exists := handlers.find(knob.Target) != nil
	if knob.Target == "" || len(knob.Target) > 32 {
		return nil, apierrors.NewBadRequest("a handler has a name of 1 to 32 characters")
	}
	if knob.Name == "handler.add" {
		if exists {
			return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "handlers"}, knob.Target)
		}
		return func(context.Context) error { return handlers.Add(knob.Target) }, nil
	}
	if !exists {
		return nil, handlers.unknown(knob.Target)
	}
	if knob.Name == "handler.remove" {
		return func(context.Context) error { return handlers.Remove(knob.Target) }, nil
	}
	delay, err := time.ParseDuration(knob.Value)
	if err != nil || delay < 0 || delay > maxHandlerDelay {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%q: want a duration from 0s to %v", knob.Value, maxHandlerDelay))
	}
	return func(context.Context) error { return handlers.SetDelay(knob.Target, delay) }, nil
}

func (p *Pipeline) lineTurner(knob Knob) (func(context.Context) error, error) {
	lines := p.Client.Lines
	if knob.Target == "" {
		return nil, apierrors.NewBadRequest("whose line? The target is what the client calls itself")
	}
	if knob.Name == "line.drop" {
		return func(context.Context) error { return lines.dropAny(knob.Target) }, nil
	}
	on, err := strconv.ParseBool(knob.Value)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%q: want true or false", knob.Value))
	}
	state := lines.State(knob.Target)
	if knob.Name == "line.cut" {
		state.Cut = on
	} else {
		state.Stalled = on
	}
	return func(context.Context) error { lines.Set(knob.Target, state); return nil }, nil
}

func (p *Pipeline) ringTurner(knob Knob) (func(context.Context) error, error) {
	capacity, err := strconv.Atoi(knob.Value)
	if err != nil || capacity < 0 || capacity > 100*1024 {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%q: want a number of events from 0 to 102400", knob.Value))
	}
	resource := knob.Target
	if resource == "" {
		resource = "pods"
	}
	return func(context.Context) error { return p.Server.SetRingCapacity(resource, capacity) }, nil
}

func (p *Pipeline) trafficTurner(knob Knob) (func(context.Context) error, error) {
	rate, err := strconv.Atoi(knob.Value)
	if err != nil || rate < 0 || rate > MaxTraffic {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%q: want a number of changes a second from 0 to %d", knob.Value, MaxTraffic))
	}
	return func(context.Context) error { return p.Server.Traffic.SetRate(rate) }, nil
}

func (p *Pipeline) compactEtcd(ctx context.Context) error {
	_, err := p.Server.Compact(ctx)
	return err
}

func (p *Pipeline) removeWatchers(context.Context) error {
	var errs []error
	for _, each := range p.Client.Watchers.List() {
		if err := p.Client.Watchers.Remove(each.ID); !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// KnobState is how everything stands that a knob can change.
type KnobState struct {
	Handlers []HandlerInfo `json:"handlers"`
	Lines    []Line        `json:"lines"`
	Rings    []RingInfo    `json:"rings"`
	Traffic  TrafficInfo   `json:"traffic"`
}

// RingInfo is the history ring of one resource.
type RingInfo struct {
	Resource string `json:"resource"`
	Capacity int    `json:"capacity"`
	Fixed    int    `json:"fixed"` // 0: it moves
}

// Knobs returns how everything stands that a knob can change.
func (p *Pipeline) Knobs() KnobState {
	return KnobState{
		Handlers: p.Client.Handlers.List(), Lines: p.Client.Lines.List(), Rings: p.Server.rings(), Traffic: p.Server.Traffic.Info(),
	}
}
