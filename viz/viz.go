package viz

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	listwatch "listwatch/chapters/09-listwatch"
	"listwatch/internal/observe/fold"
	"listwatch/internal/observe/hold"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/rules"
	"listwatch/internal/play/lab"
	"listwatch/internal/play/lens"
	"listwatch/internal/play/scenario"
	"listwatch/internal/play/wiretap"
	"listwatch/viz/inspector"
)

// framePeriod is how often the log is folded and a feed is written: two frames of a 60 Hz screen, and few enough
// messages that a page keeps up with fifty thousand records a second. By the wall's clock, never by the world's: a page
// shows a held world, too.
const framePeriod = 33 * time.Millisecond

// Config is what the page needs to know. Log is required.
type Config struct {
	// Log is what the page shows.
	Log *probe.Log
	// Snapshot returns the components' own Snapshots as something that marshals to JSON; nil: /viz/state is 404.
	Snapshot func() any
	// Recount lets the store of a subject report what it holds, if that is at most limit objects; nil: none can be
	// asked.
	Recount func(resource, subject string, limit int)
	// Wire returns the open watches of the client half as bytes; nil: /viz/wire is 404.
	Wire func() []wiretap.Stream
	// Rules keeps the ten promises checked on the log; nil: /viz/rules is 404.
	Rules *rules.Monitor
	// Sandbox does what is done to the machine; nil: nothing runs that could be acted on.
	Sandbox Sandbox
	// Client writes what a tour tells of; required where there is a Sandbox.
	Client *listwatch.RESTClient
	// Play plays a story on the machine, to its end; nil: the stories are told from their recordings.
	Play func(ctx context.Context, id string) (scenario.Seen, error)
	// Scenarios are offered on the page, in order.
	Scenarios []scenario.Story
	// API answers every path that is not the page's, as a kube-apiserver would; nil: 404.
	API http.Handler
	// Server is the address of the server to which API forwards; "": API is ours.
	Server string
	// Lens returns what was seen of the requests that API forwards; nil: /viz/lens is 404.
	Lens func() lens.Report
	// Guest is our client half on that server; nil: there is none.
	Guest Guest
	// Book answers /book/ and below; nil: 404.
	Book http.Handler
	// Hosts are the names and addresses by which the server may be called besides loopback, as in [Guard].
	Hosts []string
	// Replay says that the log is a recording: nothing runs that could be acted on.
	Replay bool
	// Recording is the hash of the recording that is replayed, by which links to it are known; "" if the log is our
	// own.
	Recording string
	// Keyframe is the picture before the log's first record; nil: nothing was there yet.
	Keyframe *fold.State
	// Hold is what can be held, and whose clock can be moved; nil: nothing runs.
	Hold *hold.World
	// Viewed is told of each page that begins to watch the log; nil: nothing is done then. It does not block.
	Viewed func()
	// Lab is the lab of which this program runs in a working copy; nil: of none.
	Lab *lab.Lab
	// Switches are shown as they are: "fifo" to "real", and so on.
	Switches map[string]string
}

// UI serves the page. It is an http.Handler for the whole port.
type UI struct {
	// Set by New, never changed.
	config  Config
	id      string // tells this process's log from another one's: a page that outlives us must begin again
	folder  *folder
	handler http.Handler

	inspector *inspector.Inspector

	done chan struct{} // closed by Run when it ends, never sent on: open feeds end
}

var _ http.Handler = (*UI)(nil)

// New returns the page for a log. It starts nothing; [UI.Run] does.
func New(config Config) *UI {
	u := &UI{
		config: config,
		id:     rand.Text(),
		folder: newFolder(config.Log, config.Keyframe),

		inspector: &inspector.Inspector{Log: config.Log},

		done: make(chan struct{}),
	}
	if config.Wire != nil {
		u.inspector.Streams = u.streams
	}
	u.handler = Guard(config.Hosts...)(u.routes())
	return u
}

// Run keeps the folded state current until ctx is done, then ends every open feed. It is called once.
func (u *UI) Run(ctx context.Context) {
	defer close(u.done)
	u.folder.run(ctx, u.config.Recount)
}

// ServeHTTP answers one request, if the [Guard] lets it in.
func (u *UI) ServeHTTP(w http.ResponseWriter, r *http.Request) { u.handler.ServeHTTP(w, r) }

func (u *UI) routes() http.Handler {
	router := chi.NewRouter()
	router.Use(middleware.GetHead)
	router.Get("/", u.serveStage)
	router.Get("/viz/events", u.serveEvents)
	router.Get("/viz/told", u.serveTold)
	router.Get("/viz/assets/*", serveAsset)
	router.Get("/viz/takes/{name}", serveTake)
	router.Get("/viz/recording", u.serveRecording)
	c := &u.config
	component := need(c.Snapshot != nil, http.StatusNotFound, "no component to ask: this page shows a log only")
	rules := need(c.Rules != nil, http.StatusNotFound, "this log is not checked")
	wire := need(c.Wire != nil, http.StatusNotFound, "there is no wire: this page shows a log only")
	forwards := need(c.Lens != nil, http.StatusNotFound, "there is no lens: this server is our own")
	guest := need(c.Guest != nil, http.StatusNotFound, "this server is our own")
	world := need(c.Hold != nil, http.StatusConflict, "nothing runs here that could be held")
	const nothing = "nothing is running that could be acted on"
	player := need(c.Play != nil, http.StatusServiceUnavailable, nothing)
	acts := need(c.Sandbox != nil, http.StatusServiceUnavailable, nothing)
	turns := need(c.Sandbox != nil, http.StatusNotFound, nothing)
	for route, answer := range map[string]answer{
		"GET /viz/part/{station}/{tab}": u.part,
		"GET /viz/panel/knobs":          turns(u.knobsPanel),
		"GET /viz/panel/promises":       rules(u.promisesPanel),
		"GET /viz/panel/lens":           forwards(guest(u.lensPanel)),
		"GET /viz/snapshot":             u.snapshot,
		"GET /viz/keyframe":             u.keyframe,
		"GET /viz/records":              u.records,
		"GET /viz/timeline":             u.timeline,
		"GET /viz/points":               shown(fold.Points),
		"GET /viz/state":                component(shown(c.Snapshot)),
		"GET /viz/rules":                rules(u.rules),
		"GET /viz/wire":                 wire(u.wire),
		"GET /viz/lens":                 forwards(shown(c.Lens)),
		"GET /viz/guest":                guest(u.guestState),
		"POST /viz/guest":               guest(withBody(u.choose)),
		"GET /viz/hold":                 world(func(*http.Request) (any, error) { return c.Hold.Status(), nil }),
		"POST /viz/hold":                world(withBody(u.hold)),
		"POST /viz/clock":               world(withBody(u.moveClock)),
		"GET /viz/watchers":             u.watchers,
		"POST /viz/watchers":            acts(u.addWatcher),
		"DELETE /viz/watchers/{id}":     acts(u.removeWatcher),
		"POST /viz/console":             acts(withBody(u.console)),
		"GET /viz/scenarios":            u.scenarios,
		"GET /viz/scenario/tour":        u.tellTour,
		"GET /viz/scenario/{id}":        u.tellScenario,
		"POST /viz/scenario/{id}":       player(u.playScenario),
		"POST /viz/tour":                acts(withBody(u.actTour)),
		"GET /viz/knobs":                acts(func(*http.Request) (any, error) { return c.Sandbox.Knobs(), nil }),
		"POST /viz/knobs":               acts(withBody(u.turnKnob)),
		"POST /viz/reset":               acts(u.resetSandbox),
	} {
		router.Handle(route, answer)
	}
	if pages := u.config.Book; pages != nil {
		router.Handle("/book", http.RedirectHandler("/book/", http.StatusMovedPermanently))
		router.Get("/book/*", pages.ServeHTTP)
	}
	router.NotFound(u.serveElse)
	router.MethodNotAllowed(serveMethodNotAllowed)
	return router
}

// need returns what makes an answer work on something: where that is not there, every request is refused with a code
// and a sentence.
func need(there bool, code int, otherwise string) func(answer) answer {
	return func(a answer) answer {
		if there {
			return a
		}
		return func(*http.Request) (any, error) { return nil, refuse(code, "%s", otherwise) }
	}
}

// serveElse leaves every other path to the API. What is below our own paths stays here also if the API is another
// program's.
func (u *UI) serveElse(w http.ResponseWriter, r *http.Request) {
	if u.config.API == nil || strings.HasPrefix(r.URL.Path, "/viz/") || strings.HasPrefix(r.URL.Path, "/book/") {
		writeStatus(w, r, http.StatusNotFound, "there is nothing at this path")
		return
	}
	u.config.API.ServeHTTP(w, r)
}

// snapshot is the list of the page's list-watch: everything up to seq.
func (u *UI) snapshot(r *http.Request) (any, error) {
	seq, state, err := u.folder.snapshot(r.Context())
	return struct {
		Seq       uint64            `json:"seq"`
		Log       string            `json:"log"`
		Size      int               `json:"size"` // how many records it keeps
		Recording string            `json:"recording,omitempty"`
		Switches  map[string]string `json:"switches,omitempty"`
		State     json.RawMessage   `json:"state"`
	}{seq, u.id, u.config.Log.Size(), u.config.Recording, u.config.Switches, state}, err
}

// rules says how the ten promises stand, and which records have broken one.
func (u *UI) rules(r *http.Request) (any, error) {
	u.config.Rules.Look(r.Context())
	return u.config.Rules.Report(), nil
}
