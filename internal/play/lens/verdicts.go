package lens

import (
	"fmt"
	"slices"
	"time"
)

// occasion is the kind of moment at which a verdict runs.
type occasion int

const (
	asked  occasion = iota // a list or watch begins; the trail does not contain it yet
	listed                 // the first page of a list has been answered
	full                   // a client does not read its watch, whose connection is full
	ticked                 // a second has passed
)

// judged is the input for a verdict.
type judged struct {
	*trail
	*request       // the judged one; if the occasion is ticked, the newest of the trail
	lens     *Lens // the caller holds its mu
	now      time.Time
	seen     int // number of matches, including this one
}

// Thresholds of the verdicts.
const (
	// pollsWithin is the longest mean time between the lists of a poll: rarer lists cost little. Fewer than maxSteps
	// lists are not a poll, because a command such as helm lists several times, and people repeat commands.
	pollsWithin = 2 * time.Minute
	minGone     = 3               // watches in a row from the same stale version
	silentFor   = 2 * time.Minute // longer than any client's backoff
	togetherFor = 2 * time.Second // two watches must have been open for this time
)

// verdict describes one harmful habit. To add one, add a row to verdicts, two programs to TestFindings (one with the
// habit and one that almost has it), and a row to docs/BEYOND.md.
type verdict struct {
	ID       string `json:"id"`
	Advice   string `json:"advice"`
	Chapter  string `json:"chapter"`  // folder of the chapter
	Incident string `json:"incident"` // a public report of the habit; "": none is needed

	at    occasion
	least int // the number of matches for a finding, if a single one may be an accident
	// find returns the rest of a sentence that begins with the client's name, or "" if the client has no such habit.
	find func(c *judged) string
}

// verdicts are the known habits.
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
		other := func(r *request) bool { return r.Watch || r.Version != "" || r.status != 200 }
		every := c.now.Sub(c.rows[0].at) / (maxSteps - 1)
		polls := len(c.rows) == maxSteps && len(c.open) == 0 && every <= pollsWithin &&
			!slices.ContainsFunc(c.rows, other)
		return c.say(polls, `lists all %s every %v at resourceVersion "", which is a consistent read each time, `+
			"and never watches.", c.what(), rounded(every))
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
}}

// say returns the formatted sentence if so is true, otherwise "".
func (c *judged) say(so bool, format string, args ...any) string {
	if !so {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// gone returns the first of the newest watches that got 410 for the same version, and their number. It returns nil if
// a watch has succeeded since, or the client has read the state.
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

// lives reports whether an open watch of the client began before since: the client is then still the same process.
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

func rounded(d time.Duration) time.Duration {
	if d >= 10*time.Second {
		return d.Round(time.Second)
	}
	return d.Round(10 * time.Millisecond)
}
