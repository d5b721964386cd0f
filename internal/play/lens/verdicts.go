package lens

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// occasion is when a verdict runs.
type occasion int

const (
	asked  occasion = iota // a list or a watch begins; its trail does not contain it yet
	listed                 // the first page of a list was answered
	full                   // a client does not read its watch: the connection is full
	ticked                 // a second has passed
	wrote                  // a write of an object was answered
)

// judged is the input of a verdict.
type judged struct {
	*trail
	*request       // at ticked the newest of the trail
	lens     *Lens // whose lock is held
	now      time.Time
	seen     int    // how often the verdict has matched, this time included
	key      string // the finding's; by default the trail's, unless the verdict sets it
}

// When a habit is a finding.
const (
	pollsWithin    = 2 * time.Minute // lists less often cost little
	minGone        = 3               // times the same stale version
	minWrites      = 30
	writesWithin   = 10 * time.Second
	minRepeats     = 10 // writes that change nothing, or that answer their own event
	minConflicts   = 5
	conflictsFor   = 2 * time.Second // a cache may lag so long, and a client that backs off then tries often
	repeatsWithin  = time.Minute
	echoWithin     = 500 * time.Millisecond // from an event to the write that answers it
	minTurns       = 10                     // of two clients that write one object by turns
	minPerObject   = 20                     // watches of one object each; a client with a few may mean these few
	minRestarts    = 5
	restartsWithin = time.Minute
	silentFor      = 2 * time.Minute // longer than any client waits before it tries again
	togetherFor    = 2 * time.Second // two watches are open
	endMissingFor  = 5 * time.Second // after the last frame of a first state that was asked for without bookmarks,
	endLateFor     = time.Minute     // or with them: the server may be at work
	patienceLeeway = time.Second / 4 // a reflector of client-go tries again after 800 ms
)

// verdict is one harmful habit. To add one, add a row to verdicts, two programs to TestFindings, one that has
// the habit and one that nearly has it, and a row to docs/BEYOND.md.
type verdict struct {
	ID       string `json:"id"`
	Advice   string `json:"advice"`
	Chapter  string `json:"chapter"`  // its folder
	Incident string `json:"incident"` // a public report of it; "": everyday

	at    occasion
	least int // the matches that are needed, if one may be an accident
	// find returns the rest of a sentence that begins with the client's name; "" if the habit is absent. It changes
	// nothing but the key.
	find func(c *judged) string
}

// verdicts are all of them.
var verdicts = []verdict{{
	ID: "no-bookmarks", at: asked, Chapter: "06-cacher", least: 2,
	Advice: "Set allowWatchBookmarks: bookmarks keep the version young while nothing of yours changes.",
	find: func(c *judged) string {
		gone, _ := c.gone()
		return c.say(c.state() && gone != nil && !gone.Bookmarks,
			"relists %s after every 410 (%d times so far), because its watches ask for no bookmarks: "+
				"while nothing of its own changes, the version it knows grows too old.", c.what(), c.seen)
	},
}, {
	ID: "polls", at: listed, Chapter: "03-reflector", Incident: "argoproj/argo-workflows#13461",
	Advice: "Use an informer, or at least resourceVersion=0, which the cache answers.",
	find: func(c *judged) string {
		return c.polls("", `lists all %s every %v at resourceVersion "", which is a consistent read each time, `+
			"and never watches.")
	},
}, {
	ID: "polls-cache", at: listed, Chapter: "03-reflector",
	Advice: "Use an informer: it is told of each change, and lists once.",
	find: func(c *judged) string {
		return c.polls("0", "lists all %s every %v at resourceVersion 0, and never watches: "+
			"each list sends every object, changed or not, and may be older than the one before.")
	},
}, {
	ID: "no-initial-end", at: ticked, Chapter: "03-reflector",
	Advice: "A watch-list needs allowWatchBookmarks=true: the end of the first state is a bookmark.",
	find: func(c *judged) string {
		for r := range c.open {
			limit, why := endLateFor, "the server never sent it"
			if !r.Bookmarks {
				limit, why = endMissingFor, "it does not ask for bookmarks"
			}
			if r.InitialEvents && !r.initialEnd && r.status == 200 && c.now.Sub(r.lastFrame) >= limit {
				return fmt.Sprintf("waits for the bookmark that ends the first state of %s, and %s (open for %v): its "+
					"informer never syncs.", r.what(), why, rounded(c.now.Sub(r.at)))
			}
		}
		return ""
	},
}, {
	ID: "two-informers", at: ticked, Chapter: "13-informer",
	Advice: "Share one factory: two informers hold every object twice and cost the server two watches.",
	find: func(c *judged) string {
		n := 0
		for r := range c.open {
			if r.status == 200 && c.now.Sub(r.at) >= togetherFor {
				n++
			}
		}
		return c.say(n >= 2, "has %d watches of %s open at once: two informers of one process, or two processes "+
			"of one name.", n, c.what())
	},
}, {
	ID: "watch-per-object", at: asked, Chapter: "13-informer", Incident: "kubernetes/kubernetes#74412",
	Advice: "Watch the collection once, with a selector if need be, and look objects up in the informer's store.",
	find: func(c *judged) string {
		if !c.Watch || !c.ofOne() {
			return ""
		}
		n := 1
		for _, t := range c.lens.trails {
			if t != c.trail && t.client == c.client && t.resource == c.resource && len(t.open) > 0 &&
				t.rows[len(t.rows)-1].ofOne() {
				n++
			}
		}
		c.key = c.client + "\x00" + c.resource
		return c.say(n >= minPerObject, "has %d watches of %s open, each of one object: every change of any %[2]s "+
			"is compared with each of them.", n, c.resource)
	},
}, {
	ID: "slow-reader", at: full, Chapter: "05-cachewatcher", Incident: "kubernetes/kubernetes#123448",
	Advice: "Do slow work in a queue, not where the watch is read.",
	find: func(c *judged) string {
		return c.say(true, "reads its watch on %s too slowly: its connection has been full for %v, and the server "+
			"may evict it.", c.what(), rounded(c.stuckFor))
	},
}, {
	ID: "gone-silent", at: ticked, Chapter: "03-reflector", Incident: "operator-framework/java-operator-sdk#630",
	Advice: "When a watch ends, open the next one, whatever ended it: every watch ends some day.",
	find: func(c *judged) string {
		r := c.request
		silent := r.Watch && r.status == 200 && (r.cause == serverEnded || r.cause == broken) && len(c.open) == 0 &&
			c.now.Sub(r.ended) >= silentFor && c.lives(r.ended)
		return c.say(silent, "has not come back for %s since its watch ended %v ago (%s), although its other watches "+
			"go on: what it knows of them grows old.", c.what(), rounded(c.now.Sub(r.ended)), r.cause)
	},
}, {
	ID: "starts-over", at: asked, Chapter: "03-reflector",
	Advice: "See why it ends: a crash, a probe, or a loop around the informer. An informer lives as long as its " +
		"process.",
	find: func(c *judged) string {
		n := 0
		for i, r := range c.rows {
			next := c.request
			if i+1 < len(c.rows) {
				next = c.rows[i+1]
			}
			if r.Watch && r.cause == clientLeft && next.state() && c.now.Sub(r.at) <= restartsWithin {
				n++
			}
		}
		return c.say(n >= minRestarts && c.state() && !c.ofOne(), "starts over again and again: %d times "+
			"within %v it has left its watch on %s and read the whole state again.", n, restartsWithin, c.what())
	},
}, {
	ID: "hot-loop", at: wrote, Chapter: "14-controllers",
	Advice: "Compare before you write, and let the queue's rate limit hold back retries.",
	find: func(c *judged) string {
		n, first := c.run(writesWithin, func(w, last *request) bool { return w.changes() && !w.answers(last) })
		return c.say(n >= minWrites, "writes %s in a hot loop: %d times in %v.", c.one(), n, rounded(first))
	},
}, {
	ID: "answers-itself", at: wrote, Chapter: "14-controllers", Incident: "operator-framework/operator-sdk#3332",
	Advice: "Write the status only if it differs, without the time of day in it; or pass over events that leave the " +
		"generation as it was.",
	find: func(c *judged) string {
		n, first := c.run(repeatsWithin, func(w, last *request) bool { return w.changes() && w.answers(last) })
		return c.say(n >= minRepeats, "answers its own writes: %d times in %v the event of its last write of %s was "+
			"all it was told before it wrote again.", n, rounded(first), c.one())
	},
}, {
	ID: "changes-nothing", at: wrote, Chapter: "14-controllers", Incident: "kubernetes-sigs/lws#51",
	Advice: "Compare with the object in your cache, and write only if they differ.",
	find: func(c *judged) string {
		n, first := c.run(repeatsWithin, func(w, _ *request) bool {
			return w.status == 200 && w.rv != "" && !w.changes()
		})
		return c.say(n >= minRepeats, "writes %s as it is already: %d times in %v its version has stayed %s.",
			c.one(), n, rounded(first), c.rv)
	},
}, {
	ID: "same-conflict", at: wrote, Chapter: "14-controllers", Incident: "ksonnet/ksonnet#650",
	Advice: "After a 409 read the object again, make the change on what you have read, and write that.",
	find: func(c *judged) string {
		n, first := c.run(repeatsWithin, func(w, _ *request) bool {
			return w.status == 409 && (w == c.request || w.given.at.IsZero())
		})
		return c.say(n >= minConflicts && first >= conflictsFor, "tries to write the same %s again after a 409: %d "+
			"times in %v, and has not read it in between, so that its version can only be the stale one.",
			c.one(), n, rounded(first))
	},
}, {
	ID: "fight", at: wrote, Chapter: "14-controllers", Incident: "buildpacks-community/kpack#6",
	Advice: "Let one of them own the field: with server-side apply the second is told of the conflict.",
	find: func(c *judged) string {
		turns, other, last := 0, "", c.request
		for _, w := range slices.Backward(c.object.writes) {
			if w.Subresource != last.Subresource || !w.changes() || c.now.Sub(w.at) > repeatsWithin {
				continue
			}
			if other == "" && w.Client != c.client {
				other = w.Client
			}
			if w.Client != last.Client && (w.Client == c.client || w.Client == other) {
				turns, last = turns+1, w
			}
		}
		c.key = c.one()
		return c.say(turns >= minTurns, "and %s fight over %s: they have written it by turns, %d times in %v.",
			short(other), c.one(), turns, rounded(c.now.Sub(last.at)))
	},
}, {
	ID: "jumps-forward", at: asked, Chapter: "09-listwatch", Incident: "kubernetes/minikube#2585",
	Advice: "After 410 list again, and watch from the list's version.",
	find: func(c *judged) string {
		gone, _ := c.gone()
		if !c.resumes() || gone == nil || !older(gone.Version, c.Version) {
			return ""
		}
		return fmt.Sprintf("continues at version %s of %s after a 410 for %s, without a list: it loses what happened "+
			"in between, deletions too.", c.Version, c.what(), gone.Version)
	},
}, {
	ID: "stale-again", at: asked, Chapter: "03-reflector", Incident: "projectcalico/typha#227",
	Advice: "410 does not heal by waiting: list again.",
	find: func(c *judged) string {
		gone, n := c.gone()
		if !c.resumes() || gone == nil || c.Version != gone.Version {
			return ""
		}
		return c.say(n >= minGone, "asks for version %s of %s again, %d times in %v, although it gets 410 each time.",
			c.Version, c.what(), n, rounded(c.now.Sub(gone.at)))
	},
}, {
	ID: "no-version", at: asked, Chapter: "06-cacher", Incident: "kubernetes/kubernetes#121688", least: 2,
	Advice: "Name the version of a list: without one the server asks etcd how far it is, and sends every object again.",
	find: func(c *judged) string {
		return c.say(c.resumes() && c.Version == "" && c.listRV == "",
			"watches %s without a resourceVersion (%d times): each time the server asks etcd how far it is, and "+
				"sends every object again; a server of 1.27 to 1.29 may open a watch on etcd for it.",
			c.what(), c.seen)
	},
}, {
	ID: "deaf-to-deletions", at: asked, Chapter: "03-reflector", Incident: "dotnet/dotnet-operator-sdk#675", least: 2,
	Advice: "Resume from the newest version that you were given; after 410 list again, and compare.",
	find: func(c *judged) string {
		again := len(c.rows) > 0 && c.rows[len(c.rows)-1].resumes()
		return c.say(again && c.resumes() && c.Version == "0" && c.listRV == "",
			"watches %s from 0 again after a watch has ended (%d times): it is sent what exists, and never learns "+
				"what was deleted meanwhile.", c.what(), c.seen)
	},
}, {
	ID: "tweak", at: asked, Chapter: "13-informer", Incident: "argoproj/argo-workflows#11948", least: 2,
	Advice: "Let TweakListOptions set selectors only; the reflector owns resourceVersion.",
	find: func(c *judged) string {
		gone, _ := c.gone()
		stale := gone != nil && gone.Version == c.Version
		fromAny := c.resumes() && (c.Version == "" || c.Version == "0")
		return c.say(fromAny && !stale && c.listRV != "",
			"lists %s at version %s and then watches from %q (%d times): something, such as a tweak of the list "+
				"options, overrides the version of the watch.", c.what(), c.listRV, c.Version, c.seen)
	},
}, {
	ID: "ignores-retry-after", at: asked, Chapter: "09-listwatch", Incident: "kubernetes/client-go#222", least: 2,
	Advice: "Wait as long as Retry-After says, and some more at random.",
	find: func(c *judged) string {
		if len(c.rows) == 0 {
			return ""
		}
		told := c.rows[len(c.rows)-1]
		return c.say(c.now.Before(told.lastFrame.Add(told.retryAfter-patienceLeeway)),
			"asks for %s again before the %v that a 429 told it to wait are over (%d times).", c.what(),
			told.retryAfter, c.seen)
	},
}, {
	ID: "goes-back", at: asked, Chapter: "09-listwatch", Incident: "kubernetes-client/python#819", least: 2,
	Advice: "Resume from the newest version of the stream, bookmarks included, and not from that of some object.",
	find: func(c *judged) string {
		version := c.Version
		gone, _ := c.gone()
		knows := version != "" && version != "0" && (gone == nil || version != gone.Version)
		return c.say(c.resumes() && len(c.open) == 0 && knows && older(version, c.settled),
			"resumes %s from version %s although it was given %s (%d times): the server sends it again what it knows.",
			c.what(), version, c.settled, c.seen)
	},
}}

// say returns a sentence if so, otherwise "".
func (c *judged) say(so bool, format string, args ...any) string {
	if !so {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// gone returns the first of the newest watches that all got 410 for one version, and their number; nil: the newest
// watch did not get 410, or the client has read the state since.
func (c *judged) gone() (first *request, n int) {
	for _, r := range slices.Backward(c.rows) {
		switch {
		case r.state(), first != nil && r.gone && r.Version != first.Version, !r.gone && r.status == 200:
			return first, n
		case r.gone:
			first, n = r, n+1
		}
	}
	return first, n
}

// polls returns a sentence if all remembered requests of the trail are lists at that version. Commands, such as helm's,
// may list several times, and people run several of them: only so many lists, at most two minutes apart, are polls.
func (c *judged) polls(version, format string) string {
	other := func(r *request) bool { return r.Watch || r.Version != version || r.status != 200 }
	every := c.now.Sub(c.rows[0].at) / (maxSteps - 1)
	polls := len(c.rows) == maxSteps && len(c.open) == 0 && every <= pollsWithin && !slices.ContainsFunc(c.rows, other)
	return c.say(polls, format, c.what(), rounded(every))
}

// run returns how many of the client's newest writes of the object and subresource satisfy like, without a gap, and how
// long ago the first of them was. like gets each write and the one before it.
func (c *judged) run(within time.Duration, like func(w, last *request) bool) (n int, first time.Duration) {
	writes := slices.DeleteFunc(slices.Clone(c.object.writes), func(w *request) bool {
		return w.Client != c.client || w.ended.IsZero() // another client's, or a concurrent one
	})
	for i, w := range slices.Backward(writes) {
		var last *request
		if i > 0 {
			last = writes[i-1]
		}
		if w.Subresource != c.Subresource {
			continue
		}
		if !like(w, last) || c.now.Sub(w.at) > within {
			break
		}
		n, first = n+1, c.now.Sub(w.at)
	}
	return n, first
}

// lives reports whether the client has an open watch from before a time, and so is still the same process.
func (c *judged) lives(since time.Time) bool {
	for _, t := range c.lens.trails {
		if t.client != c.client {
			continue
		}
		for r := range t.open {
			if r.at.Before(since) {
				return true
			}
		}
	}
	return false
}

// ofOne reports whether it selects one object by its name.
func (a *Ask) ofOne() bool { return strings.Contains(a.Fields, "metadata.name=") }

// one names the object of a request, and is its key.
func (a *Ask) one() string {
	return a.Resource + " " + strings.TrimPrefix(a.Namespace+"/"+a.Name, "/")
}

func rounded(d time.Duration) time.Duration {
	if d >= 10*time.Second {
		return d.Round(time.Second)
	}
	return d.Round(10 * time.Millisecond)
}
