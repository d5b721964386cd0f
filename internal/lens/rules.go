package lens

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Finding is one thing that a client does wrong, in words.
type Finding struct {
	ID       string    `json:"id"`
	Client   string    `json:"client"`
	Resource string    `json:"resource"`
	Sentence string    `json:"sentence"`
	Advice   string    `json:"advice"`
	Chapter  string    `json:"chapter"`  // folder of the chapter that explains it
	Incident string    `json:"incident"` // where it happened to others: "argoproj/argo-workflows#11948"; "" if it is everyday
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
}

// rule is what is the same in all findings of one kind.
type rule struct{ id, chapter, incident, advice string }

// Rules, by what they find. The sentences are made where the finding is.
var (
	noBookmarks  = rule{"no-bookmarks", "06-cacher", "", "Set allowWatchBookmarks: bookmarks keep the version young while nothing of yours changes."}
	polls        = rule{"polls", "03-reflector", "argoproj/argo-workflows#13461", "Use an informer, or at least resourceVersion=0, which the cache answers."}
	noInitialEnd = rule{"no-initial-end", "03-reflector", "", "A watch-list needs allowWatchBookmarks=true: the end of the first state is a bookmark."}
	twoInformers = rule{"two-informers", "13-informer", "", "Share one factory: two informers hold every object twice and cost the server two watches."}
	slowReader   = rule{"slow-reader", "05-cachewatcher", "kubernetes/kubernetes#123448", "Do slow work in a queue, not where the watch is read."}
	hotLoop      = rule{"hot-loop", "14-controllers", "", "Compare before you write, and let the queue's rate limit hold back retries."}
	jumps        = rule{"jumps-forward", "09-listwatch", "kubernetes/minikube#2585", "After 410 list again, and watch from the list's version."}
	staleAgain   = rule{"stale-again", "03-reflector", "projectcalico/typha#227", "410 does not heal by waiting: list again."}
	noVersion    = rule{"no-version", "06-cacher", "kubernetes/kubernetes#121688", "Name the version of a list: without one the server asks etcd how far it is, and sends every object again."}
	tweak        = rule{"tweak", "13-informer", "argoproj/argo-workflows#11948", "Let TweakListOptions set selectors only; the reflector owns resourceVersion."}
	impatient    = rule{"ignores-retry-after", "09-listwatch", "kubernetes/client-go#222", "Wait as long as Retry-After says, and some more at random."}
	backward     = rule{"goes-back", "09-listwatch", "kubernetes-client/python#819", "Resume from the newest version of the stream, bookmarks included, and not from that of some object."}
)

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

// say adds a finding, or renews it.
func (v *Findings) say(by rule, ask *Ask, now time.Time, sentence string, args ...any) {
	key := strings.Join([]string{by.id, ask.history()}, "\x00")
	finding := v.findings[key]
	if finding == nil {
		if len(v.findings) == maxFindings {
			return
		}
		finding = &Finding{
			ID: by.id, Client: ask.Client, Resource: ask.Resource, Chapter: by.chapter, Incident: by.incident, Advice: by.advice, First: now,
		}
		v.findings[key] = finding
	}
	finding.Last = now
	finding.Sentence = short(ask.Client) + " " + fmt.Sprintf(sentence, args...)
}

// short is a user agent's first word without its version.
func short(client string) string {
	name, _, _ := strings.Cut(client, " ")
	name, _, _ = strings.Cut(name, "/")
	if name == "" {
		return "a client without a user agent"
	}
	return name
}

// what names what a request is about.
func what(ask *Ask) string {
	text := ask.Resource
	if ask.Namespace != "" {
		text += " in " + ask.Namespace
	}
	if selector := strings.Trim(ask.Labels+","+ask.Fields, ","); selector != "" {
		text += " with " + selector
	}
	return text
}

// asksForMore judges a list or a watch by what came before it.
func (v *Findings) asksForMore(o *open, request uint64, now time.Time) {
	t, ask := o.history, &o.ask
	if now.Before(t.retryAt.Add(-patienceLeeway)) {
		if t.early++; t.early >= minTimes {
			v.say(impatient, ask, now, "asks for %s again before the %v that a 429 told it to wait are over (%d times).", what(ask), t.retryIn, t.early)
		}
	}
	t.retryAt = time.Time{}
	if ask.state() {
		v.asksForState(o, now)
	}
	if !ask.Watch {
		return
	}
	t.lists = nil
	t.watches[request] = o
	if !ask.InitialEvents {
		v.asksToGoOn(o, now)
	}
}

// asksForState judges a list or a watch-list.
func (v *Findings) asksForState(o *open, now time.Time) {
	t, ask := o.history, &o.ask
	if ask.Continue {
		return
	}
	if t.gone != "" && t.goneBlind {
		if t.relists++; t.relists >= minTimes {
			v.say(noBookmarks, ask, now, "relists %s after every 410 (%d times so far), because its watches ask for no bookmarks: while nothing of its own changes, the version it knows grows too old.", what(ask), t.relists)
		}
	}
	t.gone, t.again = "", 0
	if ask.Watch || ask.Version != "" {
		t.lists = nil
	}
}

// listed judges a list that was answered.
func (v *Findings) listed(o *open) {
	t, ask, now := o.history, &o.ask, o.at
	if ask.Continue || ask.Version != "" {
		return
	}
	if len(t.lists) == minPolls {
		t.lists = append(t.lists[:0], t.lists[1:]...)
	}
	t.lists = append(t.lists, now)
	if len(t.lists) == minPolls && len(t.watches) == 0 {
		every := now.Sub(t.lists[0]) / (minPolls - 1)
		v.say(polls, ask, now, "lists all %s every %v at resourceVersion \"\", which is a consistent read each time, and never watches.", what(ask), rounded(every))
	}
}

// asksToGoOn judges a watch that begins at a version.
func (v *Findings) asksToGoOn(o *open, now time.Time) {
	t, ask := o.history, &o.ask
	switch {
	case ask.Version == "" && t.listRV == "":
		if t.noVersion++; t.noVersion >= minTimes {
			v.say(noVersion, ask, now, "watches %s without a resourceVersion (%d times): each time the server asks etcd how far it is, and sends every object again; a server of 1.27 to 1.29 may open a watch on etcd for it.", what(ask), t.noVersion)
		}
	case t.gone != "" && ask.Version == t.gone:
		if t.again++; t.again >= minAgain {
			v.say(staleAgain, ask, now, "asks for version %s of %s again, %d times in %v, although it gets 410 each time.", ask.Version, what(ask), t.again, rounded(now.Sub(t.goneAt)))
		}
	case ask.Version == "" || ask.Version == "0":
		if t.tweaked++; t.tweaked >= minTimes && t.listRV != "" {
			v.say(tweak, ask, now, "lists %s at version %s and then watches from %q (%d times): something, such as a tweak of the list options, overrides the version of the watch.", what(ask), t.listRV, ask.Version, t.tweaked)
		}
	case t.gone != "" && older(t.gone, ask.Version):
		v.say(jumps, ask, now, "continues at version %s of %s after a 410 for %s, without a list: it loses what happened in between, deletions too.", ask.Version, what(ask), t.gone)
		t.gone, t.again = "", 0
	case len(t.watches) == 1 && older(ask.Version, t.settled):
		if t.backward++; t.backward >= minTimes {
			v.say(backward, ask, now, "resumes %s from version %s although it was given %s (%d times): the server sends it again what it knows.", what(ask), ask.Version, t.settled, t.backward)
		}
	}
}

// watchEnded judges a watch as a whole.
func (v *Findings) watchEnded(o *open, r Record) {
	t := o.history
	if t.stuckFor == 0 {
		t.settle(r.At)
	}
	t.stuckFor = 0
	if o.ask.InitialEvents && !o.initialEnd && r.Status == 200 && r.Lost == 0 {
		if t.endless++; t.endless >= minTimes {
			v.endless(o, r.At, fmt.Sprintf("%d of them have ended without it", t.endless))
		}
	}
}

func (v *Findings) endless(o *open, now time.Time, how string) {
	why := "the server never sent it"
	if !o.ask.Bookmarks {
		why = "it does not ask for bookmarks"
	}
	v.say(noInitialEnd, &o.ask, now, "waits for the bookmark that ends the first state of %s, and %s (%s): its informer never syncs.", what(&o.ask), why, how)
}

// stuck judges a client that does not read.
func (v *Findings) stuck(o *open, r Record) {
	o.history.stuckFor = r.Waited
	v.say(slowReader, &o.ask, r.At, "reads its watch on %s too slowly: its connection has been full for %v, and the server may evict it.", what(&o.ask), rounded(r.Waited))
}

// written is how often one object was written lately by one client.
type written struct {
	first, last time.Time
	n           int
}

// wrote judges writes to one object.
func (v *Findings) wrote(r Record) {
	ask := r.Ask
	key := strings.Join([]string{ask.history(), ask.Name}, "\x00")
	w := v.written[key]
	if w == nil || r.At.Sub(w.first) > writesWithin {
		if w == nil && len(v.written) == maxWritten {
			v.forgetWritten(r.At)
		}
		w = &written{first: r.At}
		v.written[key] = w
	}
	w.n++
	w.last = r.At
	if w.n >= minWrites {
		v.say(hotLoop, &ask, r.At, "writes %s %s in a hot loop: %d times in %v.", ask.Resource, strings.TrimPrefix(ask.Namespace+"/"+ask.Name, "/"), w.n, rounded(r.At.Sub(w.first)))
	}
}

// forgetWritten makes room: for what was not written lately, or else for one of them.
func (v *Findings) forgetWritten(now time.Time) {
	oldest := ""
	for key, w := range v.written {
		if oldest == "" || w.last.Before(v.written[oldest].last) {
			oldest = key
		}
	}
	delete(v.written, oldest)
	maps.DeleteFunc(v.written, func(_ string, w *written) bool { return now.Sub(w.last) > writesWithin })
}

// ticked judges what only time tells.
func (v *Findings) ticked(now time.Time) {
	for _, t := range v.histories {
		n := 0
		for _, o := range t.watches {
			if o.answered && now.Sub(o.at) >= togetherFor {
				n++
			}
			if o.endIsMissing(now) {
				v.endless(o, now, fmt.Sprintf("open for %v", rounded(now.Sub(o.at))))
			}
		}
		if n >= 2 {
			v.say(twoInformers, &t.ask, now, "has %d watches of %s open at once: two informers of one process, or two processes of one name.", n, what(&t.ask))
		}
	}
}

// endIsMissing reports whether a watch-list waits for the end of its first state longer than can be.
func (o *open) endIsMissing(now time.Time) bool {
	limit := endMissingFor
	if o.ask.Bookmarks {
		limit = endLateFor
	}
	return o.answered && o.ask.InitialEvents && !o.initialEnd && now.Sub(o.lastFrame) >= limit
}

func rounded(d time.Duration) time.Duration {
	if d >= 10*time.Second {
		return d.Round(time.Second)
	}
	return d.Round(10 * time.Millisecond)
}

// View returns what is shown, the newest first.
func (v *Findings) View(now time.Time) View {
	view := View{Requests: v.requests, Frames: v.frames, Findings: []Finding{}, Clients: v.clients(), Rows: []Row{}}
	for _, finding := range v.findings {
		view.Findings = append(view.Findings, *finding)
	}
	slices.SortFunc(view.Findings, func(a, b Finding) int {
		return cmp.Or(b.First.Compare(a.First), cmp.Compare(a.Sentence, b.Sentence))
	})
	for _, row := range slices.Backward(v.rows) {
		shown := *row
		shown.Last = slices.Clone(row.Last)
		if shown.End == "" {
			shown.Took, shown.Bytes = now.Sub(row.At).Milliseconds(), row.framed
		}
		view.Rows = append(view.Rows, shown)
	}
	return view
}

func (v *Findings) clients() []Client {
	byName := map[string]*Client{}
	for _, t := range v.histories {
		if byName[t.ask.Client] == nil {
			byName[t.ask.Client] = &Client{Name: t.ask.Client}
		}
		byName[t.ask.Client].Resources++
		byName[t.ask.Client].Watches += len(t.watches)
	}
	for _, finding := range v.findings {
		if client := byName[finding.Client]; client != nil {
			client.Findings++
		}
	}
	clients := []Client{}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		clients = append(clients, *byName[name])
	}
	return clients
}
