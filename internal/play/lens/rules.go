package lens

import (
	"fmt"
	"strings"
	"time"
)

// moment is when a rule is asked.
type moment int

const (
	asked   moment = 1 << iota // a list or a watch is asked for; the history does not contain it yet
	listed                     // a list at "" was answered
	watched                    // a watch has ended
	stuck                      // a client has not read its watch for as long as stuckFor says
	ticked                     // a second has passed while a watch is open
	wrote                      // an object is written
)

// judged is what a rule is asked about.
type judged struct {
	*history
	rule    *rule
	request *request
	ask     *Ask
	now     time.Time
}

// again counts that the rule has seen what it looks for, and returns how often it has so far.
func (c *judged) again() int {
	c.times[c.rule.id]++
	return c.times[c.rule.id]
}

// staleAgain is the rule whose count begins again with each 410 and each list.
const staleAgain = "stale-again"

// When a habit is a finding.
const (
	minPolls       = 3                // lists at "" in a row
	minTimes       = 2                // of what might happen once by accident
	minAgain       = 3                // the same stale version again
	minWrites      = 30               // of one object,
	writesWithin   = 10 * time.Second // within
	togetherFor    = 2 * time.Second  // two watches are open
	endMissingFor  = 5 * time.Second  // after the last frame of a first state that was asked for without bookmarks,
	endLateFor     = time.Minute      // or with them: the server may be at work
	patienceLeeway = 100 * time.Millisecond
)

// rule is one habit that does harm. To add one, add a row to rules, a story to TestFindings, and a row to
// docs/BEYOND.md.
type rule struct {
	id       string
	at       moment
	chapter  string // folder of the chapter that explains it
	incident string // where it happened to others; "" if it is everyday
	advice   string
	// find returns the rest of a sentence that begins with the client's name; "" if there is nothing to say. It
	// changes nothing but its own count ([judged.again]).
	find func(c *judged) string
}

// rules are all of them.
var rules = []rule{{
	id: "no-bookmarks", at: asked, chapter: "06-cacher",
	advice: "Set allowWatchBookmarks: bookmarks keep the version young while nothing of yours changes.",
	find: func(c *judged) string {
		if !c.ask.state() || c.ask.Continue || c.gone == "" || !c.goneBlind {
			return ""
		}
		n := c.again()
		return from(n, minTimes,
			"relists %s after every 410 (%d times so far), because its watches ask for no bookmarks: "+
				"while nothing of its own changes, the version it knows grows too old.", c.ask.what(), n)
	},
}, {
	id: "polls", at: listed, chapter: "03-reflector", incident: "argoproj/argo-workflows#13461",
	advice: "Use an informer, or at least resourceVersion=0, which the cache answers.",
	find: func(c *judged) string {
		if len(c.lists) < minPolls || len(c.watches) > 0 {
			return ""
		}
		every := c.lists[minPolls-1].Sub(c.lists[0]) / (minPolls - 1)
		return fmt.Sprintf("lists all %s every %v at resourceVersion \"\", which is a consistent read each time, and "+
			"never watches.",
			c.ask.what(), rounded(every))
	},
}, {
	id: "no-initial-end", at: watched | ticked, chapter: "03-reflector",
	advice: "A watch-list needs allowWatchBookmarks=true: the end of the first state is a bookmark.",
	find:   noInitialEnd,
}, {
	id: "two-informers", at: ticked, chapter: "13-informer",
	advice: "Share one factory: two informers hold every object twice and cost the server two watches.",
	find: func(c *judged) string {
		return from(c.together, 2, "has %d watches of %s open at once: two informers of one process, or two "+
			"processes of one name.",
			c.together, c.ask.what())
	},
}, {
	id: "slow-reader", at: stuck, chapter: "05-cachewatcher", incident: "kubernetes/kubernetes#123448",
	advice: "Do slow work in a queue, not where the watch is read.",
	find: func(c *judged) string {
		return fmt.Sprintf("reads its watch on %s too slowly: its connection has been full for %v, and the server "+
			"may evict it.",
			c.ask.what(), rounded(c.stuckFor))
	},
}, {
	id: "hot-loop", at: wrote, chapter: "14-controllers",
	advice: "Compare before you write, and let the queue's rate limit hold back retries.",
	find: func(c *judged) string {
		w := c.written[c.ask.Name]
		return from(w.n, minWrites, "writes %s %s in a hot loop: %d times in %v.",
			c.ask.Resource, strings.TrimPrefix(c.ask.Namespace+"/"+c.ask.Name, "/"), w.n, rounded(c.now.Sub(w.first)))
	},
}, {
	id: "jumps-forward", at: asked, chapter: "09-listwatch", incident: "kubernetes/minikube#2585",
	advice: "After 410 list again, and watch from the list's version.",
	find: func(c *judged) string {
		if !c.jumps(c.ask) {
			return ""
		}
		return fmt.Sprintf("continues at version %s of %s after a 410 for %s, without a list: it loses what happened "+
			"in between, "+
			"deletions too.", c.ask.Version, c.ask.what(), c.gone)
	},
}, {
	id: staleAgain, at: asked, chapter: "03-reflector", incident: "projectcalico/typha#227",
	advice: "410 does not heal by waiting: list again.",
	find: func(c *judged) string {
		if !c.resumes() || c.gone == "" || c.ask.Version != c.gone {
			return ""
		}
		n := c.again()
		return from(n, minAgain, "asks for version %s of %s again, %d times in %v, although it gets 410 each time.",
			c.ask.Version, c.ask.what(), n, rounded(c.now.Sub(c.goneAt)))
	},
}, {
	id: "no-version", at: asked, chapter: "06-cacher", incident: "kubernetes/kubernetes#121688",
	advice: "Name the version of a list: without one the server asks etcd how far it is, and sends every object again.",
	find: func(c *judged) string {
		if !c.resumes() || c.ask.Version != "" || c.listRV != "" {
			return ""
		}
		n := c.again()
		return from(n, minTimes, "watches %s without a resourceVersion (%d times): each time the server asks etcd "+
			"how far it is, "+
			"and sends every object again; a server of 1.27 to 1.29 may open a watch on etcd for it.", c.ask.what(), n)
	},
}, {
	id: "tweak", at: asked, chapter: "13-informer", incident: "argoproj/argo-workflows#11948",
	advice: "Let TweakListOptions set selectors only; the reflector owns resourceVersion.",
	find: func(c *judged) string {
		if version := c.ask.Version; !c.resumes() || version != "" && version != "0" || version == c.gone &&
			c.gone != "" || c.listRV == "" {
			return ""
		}
		n := c.again()
		return from(n, minTimes, "lists %s at version %s and then watches from %q (%d times): something, such as a "+
			"tweak of the list "+
			"options, overrides the version of the watch.", c.ask.what(), c.listRV, c.ask.Version, n)
	},
}, {
	id: "ignores-retry-after", at: asked, chapter: "09-listwatch", incident: "kubernetes/client-go#222",
	advice: "Wait as long as Retry-After says, and some more at random.",
	find: func(c *judged) string {
		if !c.now.Before(c.retryAt.Add(-patienceLeeway)) {
			return ""
		}
		n := c.again()
		return from(n, minTimes, "asks for %s again before the %v that a 429 told it to wait are over (%d times).",
			c.ask.what(), c.retryIn, n)
	},
}, {
	id: "goes-back", at: asked, chapter: "09-listwatch", incident: "kubernetes-client/python#819",
	advice: "Resume from the newest version of the stream, bookmarks included, and not from that of some object.",
	find: func(c *judged) string {
		version := c.ask.Version
		if !c.resumes() || len(c.watches) > 0 || version == "" || version == "0" || version == c.gone ||
			!older(version, c.settled) {
			return ""
		}
		n := c.again()
		return from(n, minTimes, "resumes %s from version %s although it was given %s (%d times): the server sends "+
			"it again what it knows.",
			c.ask.what(), version, c.settled, n)
	},
}}

// from returns a sentence about what was seen n times, or "" if n is less than least.
func from(n, least int, format string, args ...any) string {
	if n < least {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// noInitialEnd finds watch-lists that have ended without their bookmark, and those that have waited for it longer than
// can be.
func noInitialEnd(c *judged) string {
	r := c.request
	if !r.ask.InitialEvents || r.initialEnd || !r.answeredOK {
		return ""
	}
	limit, why := endLateFor, "the server never sent it"
	if !r.ask.Bookmarks {
		limit, why = endMissingFor, "it does not ask for bookmarks"
	}
	how := ""
	switch open := c.watches[r]; {
	case open && c.now.Sub(r.lastFrame) >= limit:
		how = fmt.Sprintf("open for %v", rounded(c.now.Sub(r.at)))
	case !open:
		n := c.again()
		how = from(n, minTimes, "%d of them have ended without it", n)
	}
	if how == "" {
		return ""
	}
	return fmt.Sprintf(
		"waits for the bookmark that ends the first state of %s, and %s (%s): its informer never syncs.", c.ask.what(),
		why, how)
}

// resumes reports whether a watch is asked for that begins at a version.
func (c *judged) resumes() bool { return c.ask.Watch && !c.ask.InitialEvents }

// jumps reports whether a watch continues at a newer version than the one that is gone.
func (h *history) jumps(ask *Ask) bool {
	return ask.Watch && !ask.InitialEvents && h.gone != "" && older(h.gone, ask.Version)
}

func rounded(d time.Duration) time.Duration {
	if d >= 10*time.Second {
		return d.Round(time.Second)
	}
	return d.Round(10 * time.Millisecond)
}
