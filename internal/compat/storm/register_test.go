package storm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	registerClients = 4
	registerCalls   = 30               // of each client in one round
	registerRound   = 15 * time.Second // a round that is slowed down by faults ends with what it has
	judgeWithin     = 20 * time.Second // the search for an order may take exponential time
	maxUnsure       = 12               // writes of one history of which it is not known whether they happened
)

// call is what a client asks of the register: one object of the API. Each write writes a value of its own, so a value
// stands for one version.
type call struct {
	verb  string // get, list, create, update, delete
	value string // that create and update write
	from  known  // the version that update and delete ask for; the zero value in delete: any
}

// known is a version of the object as a client has seen it. The zero value: it does not exist.
type known struct {
	value string
	rv    uint64 // 0 with a value: not told yet
}

// answer is what the client got.
type answer struct {
	outcome outcome
	now     known // of get, list, create and update that went well
}

type outcome int

const (
	done     outcome = iota
	missing          // 404
	conflict         // 409
	unsure           // a time-out, a cut connection, a 5xx: a write may happen, now, later or never
)

// register is the state of the model: what is there, and the newest version there has been.
type register struct {
	now   known
	floor uint64
}

// model says what a linearizable API server answers: one call after the other, each at one moment between its beginning
// and its end.
var model = porcupine.Model{
	Init: func() any { return register{} },
	Step: func(state, input, output any) (bool, any) {
		return state.(register).step(input.(call), output.(answer))
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v: %+v", input, output) },
}

// step reports whether the register may answer so, and returns what it is then.
func (r register) step(c call, a answer) (bool, register) {
	exists := r.now.value != ""
	switch {
	case a.outcome == missing:
		return !exists && c.verb != "create", r
	case c.verb == "get" || c.verb == "list":
		return r.is(a.now), r.write(a.now)
	case a.outcome == conflict && c.verb == "create":
		return exists, r
	case a.outcome == conflict:
		return exists && c.from != known{} && r.now.value != c.from.value, r
	}
	fits := c.verb == "create" && !exists || c.verb != "create" && exists && (c.from == known{} || r.is(c.from))
	switch {
	case a.outcome == unsure && !fits:
		return true, r
	case c.verb == "delete":
		return fits, register{floor: r.floor}
	case a.outcome == unsure:
		return true, r.write(known{value: c.value})
	}
	return fits && a.now.rv > r.floor, r.write(a.now)
}

// is reports whether the register may hold a version. The version of a write of which no answer came is told by the
// first client that reads it.
func (r register) is(k known) bool {
	return r.now.value == k.value && (r.now.rv == k.rv || r.now.rv == 0 && k.rv > r.floor)
}

func (r register) write(k known) register { return register{now: k, floor: max(r.floor, k.rv)} }

// isRegister reports whether an order of the history exists in which every answer is right.
func isRegister(history []porcupine.Operation) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(model, history, judgeWithin)
}

// registers plays rounds on one object after the other until it is told to end, and judges each.
type registers struct {
	// Set before run, never changed.
	api    func() *api // a client of its own
	random *rand.Rand

	// Owned by run; read when it has returned.
	nRounds, nCalls, nUnsure, nTooHard, nLies int
	faults                                    []string
}

// run returns when ctx is done and the last round has been judged.
func (r *registers) run(ctx context.Context) {
	for ctx.Err() == nil {
		name := fmt.Sprintf("register-%d", r.nRounds)
		history := r.play(ctx, name)
		r.nRounds++
		r.nCalls += len(history)
		r.judge(name, history)
	}
	if r.nLies == 0 && r.nRounds > r.nTooHard+5 {
		r.faults = append(r.faults, "of no history a stale read was found out: it cannot fail")
	}
}

// play records one round.
func (r *registers) play(ctx context.Context, name string) []porcupine.Operation {
	ctx, cancel := context.WithTimeout(ctx, registerRound)
	defer cancel()
	h := &history{began: time.Now()}
	var clients sync.WaitGroup
	for id := range registerClients {
		client := &registerClient{id: id, name: name, api: r.api(), random: rand.New(rand.NewPCG(r.random.Uint64(), 0)), history: h}
		clients.Go(func() { client.run(ctx) })
	}
	clients.Wait()
	r.nUnsure += h.nUnsure
	return h.calls
}

// judge also judges the history with an answer behind it that is wrong for sure: it has to be found out.
func (r *registers) judge(name string, calls []porcupine.Operation) {
	switch isRegister(calls) {
	case porcupine.Unknown:
		r.nTooHard++
		return
	case porcupine.Illegal:
		r.faults = append(r.faults, fmt.Sprintf("%s is not linearizable:\n%s", name, describe(calls)))
		return
	}
	lied, ok := withStaleRead(calls)
	if !ok {
		return
	}
	switch isRegister(lied) {
	case porcupine.Illegal:
		r.nLies++
	case porcupine.Ok:
		r.faults = append(r.faults, fmt.Sprintf("a stale read of %s was not found out:\n%s", name, describe(lied)))
	}
}

// withStaleRead returns the history up to the first update that went well, and behind it the read of the version that
// this update replaced. Later calls are left out: to refute a history every order of it has to be tried, and each unsure
// write in it doubles their number.
func withStaleRead(calls []porcupine.Operation) ([]porcupine.Operation, bool) {
	first := -1
	for i, each := range calls {
		updated := each.Input.(call).verb == "update" && each.Output.(answer).outcome == done
		if updated && (first < 0 || each.Return < calls[first].Return) {
			first = i
		}
	}
	if first < 0 {
		return nil, false
	}
	end := calls[first].Return
	lied := slices.DeleteFunc(slices.Clone(calls), func(each porcupine.Operation) bool { return each.Call > end })
	read := call{verb: "get"}
	return append(lied, porcupine.Operation{Input: read, Output: answer{now: calls[first].Input.(call).from}, Call: end + 1, Return: end + 2}), true
}

func describe(calls []porcupine.Operation) string {
	var lines []string
	for _, each := range calls {
		lines = append(lines, fmt.Sprintf("  client %d [%d, %d] %+v: %+v", each.ClientId, each.Call, each.Return, each.Input, each.Output))
	}
	return strings.Join(lines, "\n")
}

// history is what the clients of one round have done.
type history struct {
	began time.Time

	mu      sync.Mutex // guards the fields below
	calls   []porcupine.Operation
	nUnsure int
}

// add notes one call. It reports whether the round may go on.
func (h *history) add(id int, c call, a answer, began, ended time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	until := int64(ended)
	if a.outcome == unsure {
		if c.verb == "get" || c.verb == "list" {
			return true // has changed nothing and tells nothing
		}
		h.nUnsure++
		until = int64(time.Hour) // it may happen after all others
	}
	h.calls = append(h.calls, porcupine.Operation{ClientId: id, Input: c, Output: a, Call: int64(began), Return: until})
	return h.nUnsure < maxUnsure
}

// registerClient is one client of one round.
type registerClient struct {
	id      int
	name    string
	api     *api
	random  *rand.Rand
	history *history

	last known // what it has seen last
}

// run makes its calls, one after the other.
func (r *registerClient) run(ctx context.Context) {
	defer r.api.close()
	for i := range registerCalls {
		if !pause(ctx, time.Duration(r.random.IntN(20))*time.Millisecond) {
			return
		}
		c := r.choose(fmt.Sprintf("%d.%d", r.id, i))
		began := time.Since(r.history.began)
		a := r.ask(c)
		if !r.history.add(r.id, c, a, began, time.Since(r.history.began)) {
			return
		}
		if a.outcome == done || a.outcome == missing {
			r.last = a.now
		}
	}
}

// choose draws the next call.
func (r *registerClient) choose(value string) call {
	switch n := r.random.IntN(10); {
	case n < 2:
		return call{verb: "get"}
	case n < 4:
		return call{verb: "list"}
	case r.last == known{}:
		return call{verb: "create", value: value}
	case n < 8:
		return call{verb: "update", value: value, from: r.last}
	case n < 9:
		return call{verb: "delete", from: r.last}
	}
	return call{verb: "delete"}
}

// ask makes the call, with a time limit of its own: what has begun is never cut off by the end of the round.
func (r *registerClient) ask(c call) answer {
	path := configMapsOf("register")
	one := path + "/" + r.name
	body := configMap{Metadata: metadata{Name: r.name, ResourceVersion: version(c.from.rv)}, Data: map[string]string{"value": c.value}}
	var reply reply
	switch c.verb {
	case "get":
		reply = r.api.do("GET", one, nil)
	case "list":
		reply = r.api.do("GET", path+"?fieldSelector=metadata.name%3D"+r.name, nil)
	case "create":
		reply = r.api.do("POST", path, body)
	case "update":
		reply = r.api.do("PUT", one, body)
	case "delete":
		reply = r.api.do("DELETE", one, deleteOptions(body.Metadata))
	}
	return answerOf(c, reply)
}

// answerOf reads a reply.
func answerOf(c call, reply reply) answer {
	switch {
	case reply.code == 404 && reply.reason() == "NotFound":
		return answer{outcome: missing}
	case reply.code == 409 && (reply.reason() == "Conflict" || reply.reason() == "AlreadyExists"):
		return answer{outcome: conflict}
	case reply.code != 200 && reply.code != 201:
		return answer{outcome: unsure}
	case c.verb == "delete":
		return answer{}
	case c.verb == "list":
		var list configMapList
		if reply.read(&list) != nil {
			return answer{outcome: unsure}
		}
		if len(list.Items) == 0 {
			return answer{outcome: missing}
		}
		return answer{now: list.Items[0].known()}
	}
	var object configMap
	if reply.read(&object) != nil {
		return answer{outcome: unsure}
	}
	return answer{now: object.known()}
}

func (c configMap) known() known { return known{c.Data["value"], c.Metadata.rv()} }

// TestAWrongHistoryIsFoundOut holds the model to what is linearizable and what is not.
func TestAWrongHistoryIsFoundOut(t *testing.T) {
	a, b := known{"a", 5}, known{"b", 6}
	create := call{verb: "create", value: "a"}
	update := call{verb: "update", value: "b", from: a}
	remove := call{verb: "delete", from: a}
	get, list := call{verb: "get"}, call{verb: "list"}
	type step struct {
		call   call
		answer answer
	}
	tests := []struct {
		name  string
		wrong bool
		steps []step // one after the other, except that those which are unsure never end
	}{
		{"a life", false, []step{{get, answer{outcome: missing}}, {create, answer{now: a}}, {get, answer{now: a}}, {update, answer{now: b}},
			{list, answer{now: b}}, {remove, answer{outcome: conflict}}, {call{verb: "delete"}, answer{}}, {list, answer{outcome: missing}}}},
		{"a stale get", true, []step{{create, answer{now: a}}, {update, answer{now: b}}, {get, answer{now: a}}}},
		{"a stale list", true, []step{{create, answer{now: a}}, {update, answer{now: b}}, {list, answer{now: a}}}},
		{"a read of what was never written", true, []step{{create, answer{now: a}}, {get, answer{now: b}}}},
		{"a lost write", true, []step{{create, answer{now: a}}, {get, answer{outcome: missing}}}},
		{"two updates of one version", true, []step{{create, answer{now: a}}, {update, answer{now: b}},
			{call{verb: "update", value: "c", from: a}, answer{now: known{"c", 7}}}}},
		{"two creations", true, []step{{create, answer{now: a}}, {call{verb: "create", value: "c"}, answer{now: known{"c", 7}}}}},
		{"there after its deletion", true, []step{{create, answer{now: a}}, {remove, answer{}}, {get, answer{now: a}}}},
		{"a conflict with what is there", true, []step{{create, answer{now: a}}, {update, answer{outcome: conflict}}}},
		{"exists, but does not", true, []step{{create, answer{outcome: conflict}}}},
		{"a version that does not rise", true, []step{{create, answer{now: a}}, {update, answer{now: known{"b", 5}}}}},
		{"another version of the same value", true, []step{{create, answer{now: a}}, {get, answer{now: known{"a", 6}}}}},
		{"a creation after a deletion with an old version", true, []step{{create, answer{now: a}}, {remove, answer{}},
			{call{verb: "create", value: "c"}, answer{now: known{"c", 4}}}}},
		{"unsure, and it happened", false, []step{{create, answer{now: a}}, {update, answer{outcome: unsure}}, {get, answer{now: a}}, {get, answer{now: b}}}},
		{"unsure, and it did not happen", false, []step{{create, answer{now: a}}, {update, answer{outcome: unsure}}, {get, answer{now: a}}}},
		{"unsure, and it happened twice", true, []step{{create, answer{now: a}}, {update, answer{outcome: unsure}}, {get, answer{now: b}},
			{call{verb: "update", value: "a", from: b}, answer{now: known{"a", 7}}}, {get, answer{now: b}}}},
		{"unsure, seen and unseen", true, []step{{create, answer{now: a}}, {update, answer{outcome: unsure}}, {get, answer{now: b}}, {get, answer{now: a}}}},
		{"unsure, under two versions", true, []step{{create, answer{outcome: unsure}}, {get, answer{now: a}}, {get, answer{now: known{"a", 6}}}}},
		{"an unsure deletion comes late", false, []step{{create, answer{now: a}}, {remove, answer{outcome: unsure}}, {get, answer{now: a}}, {get, answer{outcome: missing}}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := &history{}
			for i, step := range test.steps {
				h.add(i, step.call, step.answer, time.Duration(2*i), time.Duration(2*i+1))
			}
			want := porcupine.Ok
			if test.wrong {
				want = porcupine.Illegal
			}
			if got := isRegister(h.calls); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}
