package stage

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"listwatch/internal/observe/hold"
)

// tallWidth and tallHeight are the size of the tall stage, for narrow windows. Its stations are in rows, and the path
// winds downwards. The stations are drawn as on the wide stage; only the ways between them differ. A token's place is
// still a point of the wide stage, which ground.js moves with the nearest station or to its place in tallTurns.
const tallWidth, tallHeight = 446, 1954

// corners are the stations' top left corners on the tall stage.
var corners = map[string][2]float64{
	"http": {136, 32}, "etcd": {28, 84}, "etcd3": {136, 128}, "server-reflector": {320, 128},
	"ring": {24, 312}, "store": {250, 312},
	"incoming": {250, 546}, "dispatch": {330, 546}, "watcher": {38, 798}, "wire": {220, 798},
	"fifo": {28, 1076}, "reflector": {170, 1076},
	"indexer": {28, 1310}, "processor": {350, 1310},
	"handler": {24, 1546}, "listener": {122, 1546}, "workqueue": {24, 1762},
}

// tallTurns are the places, on the tall stage, of turns that do not move with a station.
var tallTurns = map[string][2]float64{
	"ask-up": {428, 22}, "ask-top": {416, 10}, "loop-in": {20, 1856}, "loop-low": {10, 1844}, "loop-high": {10, 52},
	"loop-out": {22, 40}, "indexer-in": {90, 1290}, "processor-in": {350, 1404}, "processor-out": {382, 1496},
	"store-out": {312, 522}, "ring-in": {357, 294}, "ring-near": {139, 294}, "etcd-door": {114, 116},
	"hub-low": {362, 764}, "hub-left": {22, 764},
}

var tallHalves = [2]string{
	"M138 20H410Q420 20 420 30V770Q420 780 410 780H226Q216 780 216 790V1008Q216 1018 206 1018H28Q18 1018 18 1008V302" +
		"Q18 292 28 292H118Q128 292 128 282V30Q128 20 138 20Z",
	fmt.Sprintf("M30 1030H430V%d H30Q20 %d 20 %d V1040Q20 1030 30 1030Z", tallHeight-6, tallHeight-6, tallHeight-16),
}

var (
	tallRails = []string{
		"M112 162H343Q357 162 357 176V280Q357 294 343 294H153Q139 294 139 308V334",
		"M190 408H298Q312 408 312 422V628Q312 642 326 642H342",
		"M236 1008V1156Q236 1170 222 1170H104Q90 1170 90 1184V1390Q90 1404 104 1404H414",
		"M362 662V750Q362 764 348 764H36Q22 764 22 778V992",
	}
	tallAsks = []string{
		"M24 1856H22Q10 1856 10 1844V52Q10 40 22 40H136",
		"M428 950V22Q428 10 416 10H308Q296 10 296 22V32",
		"M136 88C122 88 126 116 112 116",
	}
)

var tallChevrons = [][3]float64{
	{126, 162, 0}, {316, 162, 0}, {250, 294, 180}, {220, 408, 0}, {312, 534, 90}, {190, 764, 180},
	{236, 1050, 90}, {159, 1170, 180},
	{90, 1286, 90}, {250, 1404, 0}, {10, 1000, -90}, {10, 420, -90}, {428, 420, -90}, {125, 102, 120},
}

// tallBoxes returns the boxes of the stations on the tall stage.
func tallBoxes() map[string]box {
	moved := map[string]box{}
	for name, corner := range corners {
		b := boxes[name]
		b.X, b.Y = corner[0], corner[1]
		moved[name] = b
	}
	return moved
}

// shift returns how far a station moves from the wide stage to the tall one, in units.
func shift(name string) (dx, dy float64) {
	return corners[name][0] - boxes[name].X, corners[name][1] - boxes[name].Y
}

// TallStyle returns the style sheet of both stages: their ratios, what each hides, and the places on the tall one.
func TallStyle() []byte {
	var sheet bytes.Buffer
	fmt.Fprintf(&sheet, ":root { --shape: %.4f; --tall: %.4f; }\n", float64(Width)/Height,
		float64(tallWidth)/tallHeight)
	fmt.Fprintln(&sheet, ".stacked, #stage.tall .spread { display: none; }\n#stage.tall .stacked { display: inline; }")
	move := func(selector string, dx, dy float64, rest string) {
		fmt.Fprintf(&sheet, "#stage.tall %s { transform: translate(%vpx, %vpx)%s; }\n", selector, dx, dy, rest)
	}
	for _, name := range slices.Sorted(maps.Keys(corners)) {
		dx, dy := shift(name)
		move(fmt.Sprintf(":is(.station[data-station=%q], #%s)", name, name), dx, dy, "")
		move(fmt.Sprintf(".theirs [data-of=%q]", name), dx, dy, "")
	}
	for _, station := range hold.Stations() {
		dx, dy := shift(string(station))
		// On the tall stage, events enter these stations from the other side, so the gates move there.
		dx += map[string]float64{"indexer": -140, "processor": -80}[string(station)]
		x, y, turn := gateAt(station)
		move(fmt.Sprintf("[data-gate-at=%q]", station), x+dx, y+dy, fmt.Sprintf(" rotate(%vdeg)", turn))
	}
	for _, with := range [][2]string{
		{"incoming", "[data-side=server] > .frame"}, {"watcher", ":is(.visitor, .ghost)"},
		{"indexer", ".first.copy"}, {"handler", ".first.code"},
	} {
		dx, dy := shift(with[0])
		move(with[1], dx, dy, "")
	}
	for _, text := range []struct {
		selector, spot string
		x, y           float64
	}{
		{".side.server", "server", 322, 44}, {".side.client", "client", 34, 1050}, {".side.others", "others", 258, 798},
		{`[data-text="server.state"]`, "server.about", 34, 606},
	} {
		move(text.selector, text.x-spots[text.spot][0], text.y-spots[text.spot][1], "")
	}
	return sheet.Bytes()
}
