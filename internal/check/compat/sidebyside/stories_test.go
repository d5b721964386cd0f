package sidebyside

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"listwatch/internal/check/bubble"
	"listwatch/internal/check/require"
)

// A story is a list of steps. A test compares what both sides do in each step until they rest, and then their stores.
//
//	+a ~a -b ! *              writes, all at once; ! only raises the version, * is a bookmark
//	cut +c                    all watches end; c is created while no watch is open
//	expire -a +c              the same as cut, but a watch from an earlier version gets a 410
//	error 500 +c              the same as cut, but the watches end with an ERROR event
//	fail 3 refused            the next three requests fail
//	join h2 resync=30s        a handler joins
//	leave h2                  a handler leaves
//	sleep 45s                 time passes

// healsIn is the time after a fault until the next step. It is longer than all backoffs in a story together.
const healsIn = 20 * time.Minute

// player is one follower with its server, ready for a story.
type player struct {
	mode      mode
	apiServer *apiServer
	follower  *follower
	errs      diary
	handlers  map[string]*joined
	order     []string
}

// joined is a handler with its registration.
type joined struct {
	handler
	synced func() bool
	leave  func() error
}

// play plays a story in a bubble and returns one follower's actions in each step.
func play(t *testing.T, build func(*apiServer, mode, *diary) *follower, m mode, story []string) (steps []string) {
	bubble.Test(t, func(t *testing.T) {
		st := &player{mode: m, apiServer: newAPIServer(), handlers: map[string]*joined{}}
		for _, word := range []string{"+a", "+b", "+c"} {
			st.apiServer.write(word)
		}
		st.follower = build(st.apiServer, m, &st.errs)
		st.join("h1", nil)
		stop := bubble.Go(t, "test.informer", st.follower.run)
		steps = append(steps, st.look("begin"))
		for _, line := range story {
			st.step(line)
			steps = append(steps, st.look(line))
		}
		stop()
		steps = append(steps, st.look("end"))
	})
	return steps
}

func (st *player) join(name string, resync *time.Duration) {
	j := &joined{handler: handler{name: name}}
	j.synced, j.leave = st.follower.join(&j.handler, resync)
	st.handlers[name] = j
	st.order = append(st.order, name)
}

func (st *player) step(line string) {
	words := strings.Fields(line)
	switch words[0] {
	case "cut":
		st.apiServer.cut(false, nil, words[1:])
		time.Sleep(healsIn)
	case "expire":
		st.apiServer.cut(true, nil, words[1:])
		time.Sleep(healsIn)
	case "error":
		st.apiServer.cut(false, statusOf(words[1]), words[2:])
		time.Sleep(healsIn)
	case "fail":
		n, _ := strconv.Atoi(words[1])
		st.apiServer.fail(n, failureNamed(words[2]))
	case "join":
		var resync *time.Duration
		if len(words) > 2 {
			period, err := time.ParseDuration(strings.TrimPrefix(words[2], "resync="))
			if err != nil {
				panic(err)
			}
			resync = &period
		}
		st.join(words[1], resync)
	case "leave":
		if err := st.handlers[words[1]].leave(); err != nil {
			panic(err)
		}
	case "sleep":
		period, err := time.ParseDuration(words[1])
		if err != nil {
			panic(err)
		}
		time.Sleep(period)
	default:
		st.apiServer.hold(true)
		for _, word := range words {
			st.apiServer.write(word)
		}
		st.apiServer.hold(false)
	}
}

// look waits until all the bubble's goroutines block. It returns what happened since the last look, and the store.
func (st *player) look(line string) string {
	synctest.Wait()
	var b strings.Builder
	fmt.Fprintf(&b, "== %s\n", line)
	for _, request := range st.apiServer.asked() {
		fmt.Fprintf(&b, "%s\n", request)
	}
	for _, err := range st.errs.read() {
		fmt.Fprintf(&b, "%s\n", err)
	}
	for _, name := range st.order {
		j := st.handlers[name]
		for _, call := range normalize(st.mode, line, j.read()) {
			fmt.Fprintf(&b, "%s: %s\n", name, call)
		}
		fmt.Fprintf(&b, "%s: synced %v\n", name, j.synced())
	}
	var stored []string
	for _, key := range st.follower.store.ListKeys() {
		stored = append(stored, nameOf(st.follower.pod(key)))
	}
	fmt.Fprintf(&b, "store %v versions %s %s synced %v\n", slices.Sorted(slices.Values(stored)),
		st.follower.store.LastStoreSyncResourceVersion(), st.follower.lastSync(), st.follower.synced())
	return b.String()
}

// normalize sorts calls whose order may differ between the sides:
//
//   - deletions concluded from a list: ours are sorted by key;
//   - a resync, and the first calls of a late handler: unordered on both sides;
//   - a streamed initial state: ours has the order of the apiStream;
//   - with DeltaFIFO, everything: DeltaFIFO promises an order only for each key.
func normalize(m mode, line string, calls []string) []string {
	verb, _, _ := strings.Cut(line, " ")
	relist := slices.Contains([]string{"begin", "cut", "expire", "error"}, verb)
	class := func(call string) string {
		words := strings.Fields(call)
		switch {
		case m.delta:
			return "any"
		case strings.Contains(call, " unseen "):
			return "unseen"
		case m.watchList && relist:
			return "streamed"
		case strings.HasSuffix(call, " initial"):
			return "initial"
		case words[0] == "update" && words[1] == words[3]:
			return "resync"
		}
		return "" // keeps its place
	}
	keyOf := func(call string) string {
		key, _, _ := strings.Cut(strings.Fields(call)[1], "@")
		return key
	}
	for from := 0; from < len(calls); {
		to := from + 1
		for to < len(calls) && class(calls[from]) != "" && class(calls[to]) == class(calls[from]) {
			to++
		}
		slices.SortStableFunc(calls[from:to], func(a, b string) int { return strings.Compare(keyOf(a), keyOf(b)) })
		from = to
	}
	return calls
}

func compareStories(t *testing.T, m mode, story []string) {
	t.Helper()
	useGates(t, m)
	mine := play(t, newOurFollower, m, story)
	theirs := play(t, newTheirFollower, m, story)
	for i := range mine {
		require.Equal(t, "", cmp.Diff(theirs[i], mine[i]),
			"story %q, step %d (-theirFollower +ourFollower):\n", story, i)
	}
}

var modes = []mode{{}, {watchList: true}, {delta: true}, {delta: true, watchList: true}}

func TestBothTellTheSameStory(t *testing.T) {
	stories := []struct {
		name  string
		mode  mode
		story []string
	}{
		{"one write after the other", mode{}, []string{"+d", "~d", "~d", "-d", "+d", "~a", "-b"}},
		{"a burst", mode{}, []string{"+d ~d -d +d ~a ~a -b +e -e", "~a ~c ~d ~a"}},
		{"bookmarks move the versions", mode{}, []string{"! *", "~a", "! ! *", "cut", "~b"}},
		{"a watch that breaks off is resumed", mode{}, []string{"~a", "cut", "cut +d -a ~b", "~d", "cut -d"}},
		{"a list tells of deletions no watch saw", mode{}, []string{"~a", "expire -a", "expire -b ~c +d +a", "~a",
			"expire"}},
		{"an object made again while no watch was open is an update", mode{}, []string{"expire -a +a",
			"expire -b +b -b", "-a"}},
		{"everything goes", mode{}, []string{"expire -a -b -c", "+a", "expire -a", "expire"}},
		{"errors in the apiStream", mode{}, []string{"error 410", "error 410 -a", "error 500 ~b", "error 504 +d",
			"error 403", "error 429 ~d", "~b"}},
		{"requests that fail", mode{}, []string{"fail 3 refused", "cut ~a", "fail 3 429", "cut ~a", "fail 2 500",
			"cut ~a", "fail 1 410", "cut ~a", "fail 1 504", "expire -a", "fail 4 410", "expire", "fail 2 403",
			"cut +a", "fail 5 refused", "expire -b"}},
		{"resync", mode{resync: time.Minute}, []string{"sleep 1m", "sleep 30s", "~a", "sleep 31s", "sleep 10m",
			"+d -a", "sleep 1m"}},
		{"handlers with periods of their own", mode{resync: time.Minute}, []string{"join h2 resync=3m",
			"join h3 resync=0s", "join h4 resync=10s", "sleep 1m", "sleep 1m", "sleep 1m", "~a", "sleep 4m",
			"leave h1", "sleep 3m"}},
		{"no resync, whatever handlers ask", mode{}, []string{"join h2 resync=1m", "sleep 10m"}},
		{"a relist after a resync is only for those it is due", mode{resync: time.Hour}, []string{"join h2 resync=0s",
			"expire ~a", "sleep 2h", "expire ~b"}},
		{"a late handler", mode{}, []string{"~a", "join h2", "+d", "expire -a", "join h3", "~d", "-d"}},
		{"a late handler of an empty store", mode{}, []string{"-a -b -c", "join h2", "+a"}},
		{"handlers leave", mode{}, []string{"join h2", "leave h1", "~a", "leave h1", "leave h2", "~a", "join h3",
			"-a"}},
		{"transformed", mode{transform: true}, []string{"~a", "+d", "-a", "expire -b ~c", "join h2", "cut ~d", "-d"}},
		{"transformed and resynced", mode{transform: true, resync: time.Minute}, []string{"sleep 61s", "~a",
			"sleep 1m"}},
	}
	for _, s := range stories {
		for _, m := range modes {
			m.resync, m.transform = s.mode.resync, s.mode.transform
			t.Run(s.name+","+m.String(), func(t *testing.T) { compareStories(t, m, s.story) })
		}
	}
}

// The periods in random stories keep resyncs away from the times of steps, because the time in which a fault heals
// depends on jitter, which differs between the sides.
const (
	randomResync       = 7*time.Hour + 13*time.Minute
	randomSleep        = "8h7m"
	randomHandlerSlow  = "19h5m"
	randomHandlerOften = "1s"
)

// TestBothTellAnyStory plays random stories, a third of them with resyncs, a quarter with a transformation. It prints a
// story that fails, so that we can add the story to the table above.
func TestBothTellAnyStory(t *testing.T) {
	for seed := range uint64(200) {
		for _, m := range modes {
			random := rand.New(rand.NewPCG(seed, 5))
			m.transform = random.IntN(4) == 0
			if random.IntN(3) == 0 {
				m.resync = randomResync
			}
			story := randomStory(random)
			t.Run(fmt.Sprintf("%d,%v", seed, m), func(t *testing.T) { compareStories(t, m, story) })
		}
	}
}

func randomStory(random *rand.Rand) (story []string) {
	pick := func(words ...string) string { return words[random.IntN(len(words))] }
	writes := func() string {
		var words []string
		for range random.IntN(5) {
			word := pick("+", "~", "-", "-", "*", "!")
			if word != "*" && word != "!" {
				word += pick("a", "b", "c", "d", "e")
			}
			words = append(words, word)
		}
		return " " + strings.Join(words, " ")
	}
	handlers := []string{"h1"}
	for range 12 {
		switch random.IntN(14) {
		case 0:
			story = append(story, "cut"+writes())
		case 1, 2:
			story = append(story, "expire"+writes())
		case 3:
			story = append(story, "error "+pick("410", "500", "504", "403", "429")+writes())
		case 4:
			story = append(story, "fail "+pick("1", "2", "3")+" "+pick("refused", "429", "410", "500", "504", "403"))
		case 5:
			name := "h" + strconv.Itoa(len(handlers)+1)
			handlers = append(handlers, name)
			story = append(story, "join "+name+pick("", "", " resync=0s", " resync="+randomHandlerSlow, " resync="+
				randomHandlerOften))
		case 6:
			story = append(story, "leave "+pick(handlers...))
		case 7, 8:
			story = append(story, "sleep "+randomSleep)
		default:
			story = append(story, pick("+a", "~b", "-c")+writes())
		}
	}
	return story
}
