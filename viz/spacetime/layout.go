// Package spacetime draws the stage's records in a second view: a line for each goroutine, an arrow for each hand-over,
// and time from left to right. handovers.js finds the arrows.
package spacetime

import "listwatch/viz/stage"

// area is the rectangle for the records, in units of the stage. Names are left of it, and the legend is above it.
var area = struct {
	Left   float64 `json:"left"`
	Right  float64 `json:"right"`
	Top    float64 `json:"top"`
	Bottom float64 `json:"bottom"`
}{204, stage.Width - 14, 46, 536}

const legendBase = 30.0 // the baseline of the words above the area

// signs is the legend: each sign's drawing, its place, its meaning, and how far to the right the meaning is written.
var signs = []struct {
	path, use string // one is set: the class of a path, or the address of a symbol
	x, y      float64
	means     string
	far       float64
}{
	{path: "arrow back", x: 484, y: legendBase - 5, means: "receiver wrote first", far: 29},
	{path: "arrow", x: 684, y: legendBase - 5, means: "through a queue", far: 32},
	{path: "arrow passage", x: 842, y: legendBase - 5, means: "seen again", far: 32},
	{use: "#token-bookmark", x: 957, y: legendBase - 5, means: "bookmark", far: 18},
}
