// Package spacetime is the room of the second view of the same records: a line for each goroutine, an arrow for what
// they hand over, time from left to right.
package spacetime

import "listwatch/viz/stage"

// area is where records are drawn, in units of the stage: names are left of it, times below, the legend above.
var area = struct {
	Left   float64 `json:"left"`
	Right  float64 `json:"right"`
	Top    float64 `json:"top"`
	Bottom float64 `json:"bottom"`
}{204, stage.Width - 14, 46, 474}

const (
	margin     = 8.0  // of the cursor and the future, above and below the area
	legendBase = 30.0 // the words above it
)

// signs are the legend: how each is drawn, where, and what it means, so far from there.
var signs = []struct {
	path, rect, use string // one of them is the class of a shape
	x, y            float64
	means           string
	far             float64
}{
	{path: "arrow back", x: 22, y: 491, means: "receiver wrote first", far: 29},
	{path: "arrow", x: 524, y: legendBase - 5, means: "through a queue", far: 32},
	{path: "arrow passage", x: 682, y: legendBase - 5, means: "seen again", far: 32},
	{rect: "waits", x: 802, y: legendBase - 5, means: "waits", far: 31},
	{rect: "runs", x: 884, y: legendBase - 5, means: "runs", far: 31},
	{use: "#token-bookmark", x: 957, y: legendBase - 5, means: "bookmark", far: 18},
}
