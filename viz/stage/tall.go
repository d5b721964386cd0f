package stage

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"listwatch/internal/observe/hold"
)

// The tall stage is for a narrow window: the stations are stacked row by row, and the path winds downwards. Each
// station is drawn as on the wide stage and moved; only the ways between stations are others. So a token's place is
// still a point of the wide stage, which ground.js moves.
const (
	tallWidth, tallHeight = 446, 1490
	tallWireX, tallLoopX  = 438.0, 8.0
	tallWireY             = 786.0 // of the wire's words, between the halves
)

// tallDoor is where the way into the ring comes from.
var tallDoor = [2]float64{352, 300}

// corners are where the boxes of the stations stand on the tall stage.
var corners = map[string][2]float64{
	"http": {18, 72}, "etcd": {132, 72}, "etcd3": {232, 72},
	"store": {18, 296}, "ring": {214, 296},
	"incoming": {22, 564}, "dispatch": {110, 564}, "watcher": {210, 564},
	"fifo": {134, 896}, "reflector": {288, 896},
	"workqueue": {16, 1104}, "indexer": {200, 1104}, "processor": {342, 1104},
	"handler": {16, 1310}, "listener": {124, 1310},
}

var tallHalves = [2]string{
	"M22 4H430V758H22Q12 758 12 748V14Q12 4 22 4Z",
	fmt.Sprintf("M22 852H430V%d H22Q12 %d 12 %d V862Q12 852 22 852Z", tallHeight-6, tallHeight-6, tallHeight-16),
}

var tallRails = []string{
	fmt.Sprintf("M16 1186H14Q%v 1186 %v 1174V152Q%v 140 14 140H18", tallLoopX, tallLoopX, tallLoopX),
	"M114 140H132", "M214 140C226 140 222 112 240 112", "M330 112C380 112 380 163 316 163C240 163 212 214 240 214",
	"M330 214C352 214 352 250 352 316", "M228 390H148", "M83 480C83 530 98 510 98 564", "M98 632H128",
	fmt.Sprintf("M%v 572V962Q%v 978 424 978", tallWireX, tallWireX),
	"M288 978H270", "M186 1060L208 1104", "M324 1186H342", "M96 1310V1268",
}

var tallChevrons = [][3]float64{
	{123, 140, 0}, {223, 126, -35}, {352, 270, 90}, {188, 390, 180}, {92, 524, 80}, {113, 632, 0},
	{tallWireX, 720, 90}, {tallWireX, 880, 90}, {279, 978, 180}, {197, 1082, 60}, {333, 1186, 0}, {96, 1289, -90},
	{tallLoopX, 1000, -90}, {tallLoopX, 420, -90},
}

// tallBoxes are the boxes of the stations on the tall stage.
func tallBoxes() map[string]box {
	moved := map[string]box{"wire": {X: 16, Y: tallWireY - 22, W: 408, H: 42}}
	for name, corner := range corners {
		b := boxes[name]
		b.X, b.Y = corner[0], corner[1]
		moved[name] = b
	}
	return moved
}

// shift is how far a station is moved from the wide stage to the tall one.
func shift(name string) (dx, dy float64) {
	if name == "wire" {
		return tallWireX - wireX, tallWireY - 266
	}
	return corners[name][0] - boxes[name].X, corners[name][1] - boxes[name].Y
}

// TallStyle returns the style sheet that moves what the wide stage draws to where it stands on the tall one.
func TallStyle() []byte {
	var sheet bytes.Buffer
	fmt.Fprintln(&sheet,
		".stacked { display: none; }\n#stage.tall .stacked { display: inline; }\n"+
			"#stage.tall .spread { display: none; }")
	move := func(selector string, dx, dy float64, rest string) {
		fmt.Fprintf(&sheet, "#stage.tall %s { transform: translate(%vpx, %vpx)%s; }\n", selector, dx, dy, rest)
	}
	for _, name := range slices.Sorted(maps.Keys(corners)) {
		dx, dy := shift(name)
		move(fmt.Sprintf(".station[data-station=%q]", name), dx, dy, "")
		move(fmt.Sprintf(".theirs [data-of=%q]", name), dx, dy, "")
	}
	for _, station := range hold.Stations() {
		dx, dy := shift(string(station))
		// The gate of a station that is entered from its other side stands there.
		dx += map[string]float64{"store": 148, "indexer": -140, "processor": -90}[string(station)]
		x, y, turn := gateAt(station)
		move(fmt.Sprintf("[data-gate-at=%q]", station), x+dx, y+dy, fmt.Sprintf(" rotate(%vdeg)", turn))
	}
	dx, dy := shift("incoming")
	move(".scenery > .frame", dx, dy, "")
	for _, text := range []struct {
		selector, spot string
		x, y           float64
	}{
		{".side", "server", 22, 24}, {".client ~ .side ~ .side", "client", 22, 886},
		{":is(.about.ours, .theirs .about)", "server.about", 22, 44}, {"[data-text=behind]", "behind", 424, 24},
		{"[data-station=wire] .title", "wire.title", 40, tallWireY + 5},
		{"[data-text='wire.proto']", "wire.proto", 104, tallWireY + 5},
		{"[data-text='wire.bytes']", "wire.bytes", 210, tallWireY + 5},
		{"[data-text='wire.n']", "wire.n", 296, tallWireY + 6},
		{"[data-text='wire.streams']", "wire.streams", 366, tallWireY + 5},
	} {
		move(text.selector, text.x-spots[text.spot][0], text.y-spots[text.spot][1], "")
	}
	b := tallBoxes()["wire"]
	fmt.Fprintf(&sheet, "#stage.tall [data-station=wire] .hit { x: %vpx; y: %vpx; width: %vpx; height: %vpx; }\n", b.X,
		b.Y, b.W, b.H)
	return sheet.Bytes()
}
