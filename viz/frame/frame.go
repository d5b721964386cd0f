// Package frame is the page around the rooms: the bar above them, the banner, the dialogs, the keys, and page.js, which
// joins the modules of all rooms.
package frame

import (
	"listwatch/internal/observe/rules"
	"listwatch/internal/play/guest"
	"listwatch/internal/play/lab"
	"listwatch/internal/play/sandbox"
	"listwatch/internal/play/scenario"
	"listwatch/viz/tour"
)

// View is what the page is made from. What stands in the log, its script draws.
type View struct {
	Mode      string // of the body's data-mode: "live", "held" or "replay"
	World     bool   // something runs that can be held
	Take      string // a recording to be shown instead of the log, by name
	Sandbox   bool   // something runs that can be acted on
	Scenarios []scenario.Story
	Promises  *rules.Report     // how they stand; nil: they are not checked
	Knobs     sandbox.KnobState // how they stand
	Watchers  []sandbox.WatcherInfo
	Lab       *lab.Lab // the program runs in its working copy; nil: in none
	Limits    Limits
	Server    string       // address of the server if it is not ours; "": it is
	Choice    guest.Choice // what our informers watch there
	Figure    bool         // the page is a mini-stage in a chapter: the drawing and the sentence only
}

// Limits are what the program and the page have to agree on (limits.js).
type Limits struct {
	BucketWidth int64 `json:"bucketWidth"` // nanoseconds of one bucket of the timeline
	Buckets     int   `json:"buckets"`     // of the timeline, at most
	Flags       int   `json:"flags"`       // anomalies on the timeline, at most

	Writes []string `json:"writes"` // the methods of requests that change something: only those are drawn
}

// tours reports whether the page can begin with its first view, and give its tour: on a program that runs, or on the
// recording of a tour.
func (v View) tours() bool {
	return !v.Figure && v.Lab == nil && (v.Take == tour.Take || v.Sandbox && v.Take == "" && v.Mode == "live")
}
