package policy

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// claim is a fact that several pages need. It has one home; the other pages link there, and no page says the opposite.
type claim struct {
	says    string
	home    string            // "docs/READS.md#list": the section that owns it
	symbols []string          // "06-cacher CacheDelegator.shouldDelegateList": what makes it true
	others  []string          // documents that speak of it, and link to its home
	words   map[string]string // by document or source: how it says so, as a regular expression; \W+ stands for the end of a line, too
	never   string            // what no document and no comment may say: the false belief, as a regular expression
}

// claims are the facts about which pages have contradicted each other, or the folklore.
var claims = []claim{
	{
		says: "A list at \"\" is answered from the cache, after one small read of etcd's revision.",
		home: "docs/READS.md#list", symbols: []string{"06-cacher CacheDelegator.shouldDelegateList", "04-watchcache WatchCache.GetList"},
		others: []string{"chapters/03-reflector/README.md", "chapters/06-cacher/README.md"},
		never:  `the newest, from etcd itself|has to come\s+from the source itself`,
	},
	{
		says: "Pages and exact versions come from the cache's snapshots.",
		home: "docs/READS.md#list", symbols: []string{"04-watchcache WatchCache.HasSnapshot", "03-reflector Reflector.pageSize"},
		others: []string{"chapters/03-reflector/README.md", "chapters/04-watchcache/README.md"},
		never:  `page can only be (read|had) from etcd`,
	},
	{
		says: "While a cache is filled, a GET and an unfiltered LIST with a limit go to etcd; what else the cache would answer gets 429.",
		home: "docs/READS.md#list", symbols: []string{"06-cacher shouldDelegateListOnNotReadyCache", "06-cacher CacheDelegator.Get"},
		others: []string{"chapters/06-cacher/README.md"},
		never:  `(?i)(?:^|\. )(?:until the new list is in|while the cache (?:has no source|is being filled)), reads and watches are refused|every other LIST, and every WATCH, gets 429`,
	},
	{
		says: "Bookmarks exist for a client to which nothing is sent while its neighbours are busy.",
		home: "docs/SIGNALS.md", symbols: []string{"04-watchcache history.appendLocked", "05-cachewatcher CacheWatcher.NextBookmarkTime"},
		others: []string{"chapters/03-reflector/README.md", "chapters/06-cacher/README.md"},
		never:  `on a quiet resource they are (all that moves|the only thing that moves)`,
	},
	{
		says: "A watcher is sent a bookmark every minute, also when its version has not moved.",
		home: "docs/CHANNELS.md", symbols: []string{"05-cachewatcher CacheWatcher.NextBookmarkTime"},
		others: []string{"chapters/06-cacher/README.md"},
		never:  `has not moved past what it was last sent is not bothered`,
	},
	{
		says: "A handler may find that the object it is told of is gone from the store.",
		home: "docs/SIGNALS.md#on-the-client", symbols: []string{"13-informer deltaProcessor.processDeltasInBatch"},
		others: []string{"chapters/13-informer/README.md", "docs/ARCHITECTURE.md"},
		never:  `finds the pod in the indexer, or something newer\.`,
	},
	{
		says: "Versions of one resource have been comparable since 1.35.",
		home: "chapters/01-storage/README.md", symbols: []string{"01-storage APIObjectVersioner"},
		others: []string{"chapters/03-reflector/README.md", "docs/SIGNALS.md"},
		never:  `compared for equality, and that is all`,
	},
	{
		says: "A 410 to a list carries a token only if it was a continued page.",
		home: "docs/READS.md#list", symbols: []string{"02-etcd3 handleCompactedErrorForPaging"},
		others: []string{"chapters/08-handlers/README.md"},
		never:  `a list gets a token to go on with`,
	},
	{
		says: "Our server gives a stuck write of a watch a deadline; Kubernetes does not.",
		home: "chapters/08-handlers/README.md", symbols: []string{"08-handlers Server.withWatchDeadline"},
		others: []string{"docs/ENDINGS.md"},
		never:  `Upstream ends? a stuck write`,
	},
	{
		says: "A watch whose connections broke for ten seconds is opened again at once: it was not a very short watch.",
		home: "docs/ENDINGS.md", symbols: []string{"09-listwatch Request.Watch", "03-reflector VeryShortWatchError"},
		others: []string{"chapters/09-listwatch/README.md"},
		never:  `reflector\W+takes\W+it\W+for\W+a\W+very\W+short\W+watch|before the response.* calls it a very short watch`,
	},
	{
		says: "The server copies a list's objects before it sends the first, and encodes one after the other: it holds no whole response.",
		home: "chapters/03-reflector/README.md#a-consistent-start-the-newer-way", symbols: []string{"06-cacher fill"},
		never: `in\W+memory\W+as\W+one\W+response|builds no response in memory`,
	},
	{
		says: "A watch from \"\" or \"0\" has always begun with the state.",
		home: "chapters/08-handlers/README.md", symbols: []string{"08-handlers Scope.listOpts"},
		others: []string{"chapters/01-storage/README.md"},
		never:  `only a watch from version 0 sen`,
	},
	{
		says: "Our reflector closes incoming, our livez does not ask etcd, our websockets say why they end: Kubernetes' differ.",
		home: "docs/CHANNELS.md", symbols: []string{"06-cacher Cacher.dispatchEvents", "08-handlers WatchServer.HandleWS"},
		words: map[string]string{
			"docs/CHANNELS.md": "(?m)^\\| `incoming` of a Cacher .*Kubernetes never closes it",
			"docs/SIGNALS.md":  "(?m)^\\| `/livez` .*Kubernetes' asks etcd",
			"docs/ENDINGS.md":  `(?m)^\| the server shuts down .*Kubernetes.*websockets end with 1000`,
		},
		never: `Kubernetes just closes the socket`,
	},
	{
		says: "A resync asks the server nothing.",
		home: "docs/SIGNALS.md#on-the-client", symbols: []string{"03-reflector resyncer.startResync"},
		others: []string{"chapters/03-reflector/README.md", "chapters/12-processor/README.md"},
		never:  `(?i)a resync (re)?lists`,
	},
	{
		says: "A bookmark speaks of what concerns its watch, and of the time since that began.",
		home: "docs/SIGNALS.md", symbols: []string{"06-cacher Cacher.newBookmark"},
		others: []string{"chapters/03-reflector/README.md", "chapters/06-cacher/README.md"},
		never:  `everything up to (17\W+has|(this|its) version that concerns)|"you have everything up to here"|change since the watch began`,
	},
	{
		says: "While resyncs are off, a relist tells every handler of every object, changed or not.",
		home: "docs/QUESTIONS.md#why-does-a-relist-call-onupdate-for-what-has-not-changed", symbols: []string{"12-processor SharedProcessor.handAround"},
		words: map[string]string{
			"docs/QUESTIONS.md":                         `(?m)^\| \[12\].* from the first tick of the resync timer on: updates to the same state`,
			"chapters/03-reflector/README.md":           `tells\W+of\W+each\W+object\W+in\W+it,\W+changed\W+or\W+not`,
			"chapters/12-processor/shared_processor.go": `while\W+resyncs\W+are\W+off,\W+to\W+all`,
		},
		never: `differences\W+reach\W+the\W+handlers|[Ww]ith(out)?\W+resyncs(\W+switched\W+off)?,\W+(as\W+in\W+almost|which\W+is\W+usual)`,
	},
	{
		says: "After a restore of etcd states go back, and a watch from the future loses changes.",
		home: "docs/QUESTIONS.md#etcd-is-restored-from-an-older-backup", symbols: []string{"04-watchcache WatchCache.IntervalSinceLocked"},
		others: []string{"chapters/03-reflector/README.md"},
		words: map[string]string{
			"docs/QUESTIONS.md":                       `(?s)A server whose cache was filled after the restore refuses.*\n\| \[READS\][^\n]* watch from the future [^\n]*after a restore`,
			"docs/SIGNALS.md":                         `(?m)^\| "store first".* unless \[etcd was restored`,
			"docs/ARCHITECTURE.md":                    `kept per key, unless etcd is restored`,
			"chapters/03-reflector/README.md":         `(?s)once\W+the\W+server's\W+cache\W+was\W+refilled.*takes\W+the\W+store\W+back,\W+unless\W+etcd\W+was\W+restored`,
			"chapters/11-indexer/README.md":           `is\W+never\W+behind\W+it\W+\(unless\W+etcd\W+was\W+restored\)`,
			"chapters/13-informer/shared_informer.go": `the\W+object\W+is\W+gone,\W+unless\W+etcd\W+is\W+restored`,
		},
		never: `Order is kept per key always|healed by a list\.`,
	},
	{
		says: "A tombstone follows any list that lacks a key; had the watch resumed, OnDelete would have got the last state that matched.",
		home: "docs/QUESTIONS.md#ondelete-got-a-deletedfinalstateunknown", symbols: []string{"10-deltafifo DeletedFinalStateUnknown"},
		words: map[string]string{"docs/GLOSSARY.md": `its\W+watch\W+missed\W+that\W+an\W+object\W+was\W+deleted\W+or\W+left\W+the\W+selector`},
		never: `(?i)the\W+ring\W+no\W+longer\W+held\W+that|would\W+have\W+got\W+the\W+object's\W+last\W+state`,
	},
	{
		says: "A client that does not read is evicted only if there is enough traffic, and is not told.",
		home: "docs/QUESTIONS.md#a-clients-network-card-stops-reading", symbols: []string{"06-cacher Cacher.waitForBlocked"},
		words: map[string]string{"chapters/08-handlers/README.md": `If\W+there\W+is\W+enough\W+traffic,\W+the\W+dispatcher\W+evicts`},
		never: `the server will evict it|everything\W+after\W+its\W+version,\W+or\W+an\W+error`,
	},
	{
		says: "A client resumes at another server without a list only if the ring there reaches back far enough.",
		home: "docs/QUESTIONS.md#a-server-restarts-and-a-thousand-clients-come-back", symbols: []string{"04-watchcache WatchCache.IntervalSinceLocked"},
		words: map[string]string{"docs/BEYOND.md": `(?m)^\| a server dies .*if the ring there reaches back`},
		never: `by version, without a list \|`,
	},
	{
		says: "Kubernetes ends its watches at a shutdown only with a flag, and not at once; a crash breaks a stream.",
		home: "docs/ENDINGS.md#after-the-first-byte-the-stream-ends-in-silence", symbols: []string{"08-handlers WatchServer.serve"},
		words: map[string]string{
			"docs/QUESTIONS.md":              `Kubernetes: only with a flag\); a crash breaks it`,
			"chapters/08-handlers/README.md": `Over\W+a\W+websocket\W+this\W+server\W+tells\W+it`,
			"chapters/15-pipeline/README.md": `if\W+so\W+configured,\W+ends\W+the\W+watches`,
		},
		never: `ends\W+watches\W+at\W+once\W+only|then\W+it\W+ends\W+the\W+watches,\W+a\W+few`,
	},
	{
		says: "The version of a bookmark is that of the last event dispatched, or of etcd's progress.",
		home: "chapters/06-cacher/README.md#one-event-goes-out", symbols: []string{"06-cacher Cacher.receive"},
		words: map[string]string{
			"docs/WHERE.md":                `last event dispatched, or of etcd's progress`,
			"chapters/06-cacher/README.md": `If\W+nothing\W+at\W+all\W+is\W+written`,
		},
		never: `Of the last event that was handed over\. \||If\W+nothing\W+happens\W+for\W+long`,
	},
	{
		says: "A read by version gets 504 after three seconds: an exact list, too, and a watch that begins with the newest state.",
		home: "docs/READS.md", symbols: []string{"04-watchcache WatchCache.waitedEnoughLocked", "06-cacher Cacher.reachRequiredVersion"},
		words: map[string]string{"docs/READS.md": `(?s)Exact \|[^\n]*at most 3 s, then 504.*etcd's revision, then at most 3 s for the cache, then an ERROR event with 504`},
		never: `kubectl would ask ten times\n`,
	},
	{
		says: "A first list that comes in pages may come from a server whose cache is not ready.",
		home: "docs/READS.md#list", symbols: []string{"03-reflector Reflector.pageSize", "06-cacher shouldDelegateListOnNotReadyCache"},
		never: `it\W+has\W+no\W+cache,\W+which\W+would\W+have|in\W+pages:\W+the\W+server\W+has\W+no\W+watch\W+cache`,
	},
	{
		says: "Three kinds of change are lost without a sign: those of a watch from the future, those that the client cannot process, and those that share a version.",
		home: "docs/QUESTIONS.md#where-is-a-change-left-out-on-purpose", symbols: []string{"05-cachewatcher CacheWatcher.sendInterval", "10-deltafifo commonFIFO.prepare"},
		others: []string{"docs/SIGNALS.md"},
		words:  map[string]string{"docs/QUESTIONS.md": `(?s)with\W+three\W+exceptions.*last finalizer.*cannot be made \(transform, key\) or processed`},
		never:  `with\W+(one|two)\W+exceptions?:`,
	},
	{
		says: "A handler that is added late is shown the store in no order.",
		home: "docs/QUESTIONS.md#where-may-the-order-of-changes-differ", symbols: []string{"13-informer SharedIndexInformer.AddEventHandlerWithOptions", "11-indexer ThreadSafeStore.List"},
		words: map[string]string{"docs/QUESTIONS.md": `added late is shown the store in no order`},
		never: `another order in four places`,
	},
	{
		says: "No wakeup is lost because the version changes under the lock, wherever Broadcast is called.",
		home: "chapters/04-watchcache/README.md", symbols: []string{"04-watchcache WatchCache.apply"},
		words: map[string]string{
			"chapters/04-watchcache/process_event.go": `The version changes under the lock, so such a reader went to sleep before(?s:.*)Whether the lock is still held at this call makes no difference`,
		},
		never: `(?i)(while\W+the\W+lock\W+is\W+still\W+held|(before|until)\W+the\W+lock\W+is\W+released),?\W+so\b`,
	},
	{
		says: "The watcher of etcd 2 is a reconstruction: in this form it never existed.",
		home: "chapters/02-etcd3/README.md", symbols: []string{"02-etcd3 etcdWatcher"},
		words: map[string]string{
			"chapters/02-etcd3/etcd2.go":  `etcdWatcher is a reconstruction(?s:.*)In this form it never existed`,
			"chapters/02-etcd3/README.md": `reconstruction:\W+its\W+goroutines(?s:.*)In\W+this\W+form\W+it\W+never\W+existed`,
			"docs/ARCHITECTURE.md":        "`etcdWatcher.run` [^\n]*reconstruction(?s:.*)that of the etcd watcher is a reconstruction",
		},
		never: `(?i)Upstream:[^\n]*etcd_watcher\.go|the\W+older\W+form(\W+\w+){0,6}\W+kept`,
	},
}

// checkClaims holds that each claim has its home, its links and its symbols, and that no text says the opposite.
func checkClaims(repo *Repo, claims []claim) []Fault {
	texts, faults := repo.texts("docs/*.md", "chapters/*/README.md", "chapters/*/*.go", "README.md")
	for _, each := range claims {
		faults = append(faults, each.check(repo, texts)...)
	}
	return faults
}

// texts returns the files that match, by name, and those that cannot be read.
func (r *Repo) texts(patterns ...string) (map[string]string, []Fault) {
	var faults []Fault
	texts := map[string]string{}
	for _, pattern := range patterns {
		names, _ := fs.Glob(r.FS, pattern) // the patterns are well formed
		for _, name := range names {
			text, err := fs.ReadFile(r.FS, name)
			if err != nil {
				faults = append(faults, fault(name, 0, "%v", err))
				continue
			}
			texts[name] = string(text)
		}
	}
	return texts, faults
}

func (c claim) check(repo *Repo, texts map[string]string) []Fault {
	var faults []Fault
	file, anchor, _ := strings.Cut(c.home, "#")
	if !hasHeading(texts[file], anchor) {
		faults = append(faults, fault(file, 0, "the home of %q is missing: %s", c.says, c.home))
	}
	for _, symbol := range c.symbols {
		folder, name, _ := strings.Cut(symbol, " ")
		pkg := repo.Tree.In(path.Join("chapters", folder))
		if pkg == nil || !declared(pkg, name) {
			faults = append(faults, fault("chapters/"+folder, 0, "%s, which makes %q true, is not declared", name, c.says))
		}
	}
	for _, other := range c.others {
		if !strings.Contains(texts[other], linked(file)) {
			faults = append(faults, fault(other, 0, "speaks of %q and does not link to %s", c.says, file))
		}
	}
	for name, words := range c.words {
		if !regexp.MustCompile(words).MatchString(texts[name]) {
			faults = append(faults, fault(name, 0, "does not say %q: want %s", c.says, words))
		}
	}
	never := regexp.MustCompile(c.never)
	for name, text := range texts {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if at := never.FindStringIndex(text); at != nil {
			faults = append(faults, fault(name, 1+strings.Count(text[:at[0]], "\n"), "says the opposite of %q", c.says))
		}
	}
	return faults
}

// linked is what a link to a document ends in.
func linked(file string) string {
	if base := path.Base(file); base != "README.md" {
		return base
	}
	return path.Base(path.Dir(file)) + "/README.md"
}

// hasHeading reports whether a document has the heading of an anchor; "" stands for the document itself.
func hasHeading(text, anchor string) bool {
	if anchor == "" {
		return text != ""
	}
	for line := range strings.Lines(text) {
		if heading, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && line[0] == '#' {
			if slug(heading) == anchor {
				return true
			}
		}
	}
	return false
}

// notInSlug is what an anchor leaves out of its heading.
var notInSlug = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)

// slug is the anchor that a forge gives a heading.
func slug(heading string) string {
	return strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), ""), " ", "-")
}
