// Package stage is the room of the drawing of the path of an event, with the picture at the cursor in it: stations,
// queues, the ring, what moves between them, and the sentence below.
package stage

import (
	"fmt"
	"math"

	"github.com/a-h/templ"

	"listwatch/internal/observe/probe"
)

// The stage is drawn in a box of 1280 by 512, so that on the smallest projector one unit is one pixel and no text is
// smaller than 14. The server half runs left to right above, the wire is the tear at the right, the client half runs
// right to left below, and what a handler writes goes up again at the left: the control loop is the shape on screen.
const (
	Width  = 1280
	Height = 512

	panelLeft, panelRight   = 40.0, 1196.0
	serverTop, serverBottom = 6.0, 256.0
	clientTop, clientBottom = 276.0, 506.0

	serverAxis, clientAxis = 130.0, 414.0            // what flows between stations flows at these heights
	Top, Bottom            = serverTop, clientBottom // between them everything is drawn

	loopX, wireX = 22.0, 1240.0 // what flows between the halves flows up and down here

	laneHeight      = 37.0 // of a watcher
	laneAxis        = 26.0 // what flows in a lane flows at this height of it
	watcherLanes    = 5    // as many as there is room for
	listenerHeight  = 41.0 // of a listener, its handler, and a workqueue
	listenerLanes   = 4
	shelfRows       = 8
	shelfRowHeight  = 20.0
	ringX, ringY    = 530.0, 156.0
	ringOut, ringIn = 82.0, 60.0

	maxSlots = 32 // a pipe of at most so many slots is drawn slot by slot
)

// box is where a station stands.
type box struct {
	X, Y, W, H float64
	Title      string
}

// boxes by the station's name.
var boxes = map[string]box{
	"http":      {52, 62, 96, 184, "HTTP"},
	"etcd":      {168, 62, 82, 184, "etcd"},
	"etcd3":     {268, 62, 156, 184, "watchChan"},
	"ring":      {434, 62, 192, 184, "history ring"},
	"store":     {636, 62, 130, 184, "store"},
	"incoming":  {782, 62, 84, 184, "incoming"},
	"dispatch":  {870, 62, 80, 184, "dispatch"},
	"watcher":   {970, 62, 218, 184, "cacheWatchers"},
	"wire":      {1202, 44, 76, 456, "wire"},
	"reflector": {1050, 332, 136, 164, "reflector"},
	"fifo":      {898, 332, 136, 164, "FIFO"},
	"indexer":   {758, 332, 124, 164, "indexer"},
	"processor": {668, 332, 74, 164, "processor"},
	"listener":  {352, 332, 300, 164, "processorListeners"},
	"handler":   {240, 332, 96, 164, "handlers"},
	"workqueue": {52, 332, 172, 164, "workqueues"},
}

// FirstResource is what the stage shows first.
const FirstResource = "pods"

// Title returns what a station is called.
func Title(station probe.Station) string { return boxes[string(station)].Title }

// Right and Bottom are the box's far edges; CX is its middle.
func (b box) Right() float64  { return b.X + b.W }
func (b box) Bottom() float64 { return b.Y + b.H }
func (b box) CX() float64     { return b.X + b.W/2 }

// pipe is where a queue is drawn, and where its numbers stand.
type pipe struct {
	X, Y, W, H float64
	NumX, NumY float64
	NumAnchor  string
}

// pipes by the name of the queue. Those of lanes are relative to the lane.
var pipes = map[string]pipe{
	"etcd3-incoming": {276, 94, 90, 16, 418, 107, "end"},
	"etcd3-result":   {276, 196, 90, 16, 418, 209, "end"},
	"incoming":       {786, 122, 72, 16, 822, 158, "middle"},
	"input":          {0, 18, 104, 16, 164, 12, "end"},
	"result":         {114, 18, 104, 16, 218, 12, "end"},
	"add":            {268, 17, 32, 18, 0, 0, ""},
	"pending":        {54, 17, 194, 18, 248, 12, "end"},
	"next":           {0, 17, 32, 18, 0, 0, ""},
	"fifo":           {906, 405, 120, 18, 966, 444, "middle"},
	"workqueue":      {0, 17, 172, 18, 172, 12, "end"},
}

// anchors are the points between which tokens travel, for those that do not move about.
var anchors = map[string][2]float64{
	"loop":           {loopX, (serverAxis + clientAxis) / 2},
	"http":           {100, serverAxis},
	"etcd":           {209, serverAxis},
	"etcd3-incoming": {276, 102},
	"decode":         {352, 153},
	"etcd3-result":   {276, 204},
	"etcd3-out":      {366, 204},
	"ring":           {ringX, ringY},
	"store":          {701, 226}, // below the rows
	"incoming":       {786, serverAxis},
	"incoming-out":   {858, serverAxis},
	"dispatch":       {908, serverAxis},
	"wire":           {wireX, (serverBottom + clientTop) / 2},
	"wire-client":    {wireX, clientAxis},
	"reflector":      {1118, clientAxis},
	"fifo":           {1026, clientAxis},
	"fifo-out":       {906, clientAxis},
	"indexer":        {820, 476},
	"processor":      {705, clientAxis},
	"workqueue":      {138, clientAxis},
}

// spots are where texts and small signs are, by station and name.
var spots = map[string][2]float64{
	"server": {54, 28}, "server.about": {176, 28},
	"client": {54, 298}, "client.about": {136, 298},
	"legend.followed": {974, 271}, "legend.newest": {1069, 271},
	"first.server": {54, 36}, "first.etcd": {209, 62}, "first.dispatch": {908, 62}, "first.lanes": {1188, 40},
	"first.client": {54, 306}, "first.indexer": {820, 322}, "first.handler": {288, 322},
	"http.says": {100, 96}, "http.method": {100, 120}, "http.asks": {100, 143}, "http.status": {100, 164},
	"http.gets": {100, 187}, "http.count": {100, 212}, "http.unit": {100, 232},
	"etcd.unit": {209, 113}, "etcd.kind": {209, 134}, "etcd.rev": {209, 163},
	"etcd.full": {209, 206}, "etcd.lease": {209, 206}, "etcd.holder": {209, 229}, "etcd.said": {209, 229},
	"etcd3.incoming": {276, 84}, "etcd3.decode": {276, 148}, "etcd3.workers": {276, 166},
	"etcd3.result": {276, 190}, "etcd3.error": {346, 234}, "etcd3-incoming.post": {274, 114},
	"etcd3-result.post": {274, 218},
	"store.lock":        {690, 40},
	"incoming.ready":    {822, 96},
	"dispatch.to":       {928, 176}, "dispatch.role": {866, 194}, "dispatch.limit": {786, 211},
	"dispatch.budget": {946, 211}, "dispatch.lock": {936, 65},
	"watcher.input": {1022, 34}, "watcher.result": {1136, 34}, "watcher.more": {970, 222},
	"reflector.of": {1118, 352}, "reflector.state": {1118, 372}, "reflect.role": {1118, 391},
	"reflector.seen": {1118, 446}, "stream.post": {1046, 474}, "reflector.rv": {1118, 470},
	"fifo.order": {966, 362}, "process.role": {966, 385}, "fifo.lock": {988, 310}, "fifo.high": {966, 468},
	"fifo.other": {966, 459}, "fifo.gave": {966, 469}, "fifo.left": {966, 481}, "fifo.out": {966, 491},
	"processor.each": {705, 362}, "processor.listeners": {705, 474},
	"listener.more":  {352, 467},
	"workqueue.more": {52, 467},
	"store.n":        {764, 52}, "caching.role": {701, 236}, "watcher.n": {1188, 52}, "watcher.closed": {1188, 32},
	"indexer.n": {880, 322}, "behind": {950, 28},
	"ring.unit": {ringX, ringY - 37}, "ring.newest": {ringX, ringY - 8}, "ring.range": {ringX, ringY + 16},
	"ring.resized": {ringX, ringY + 16}, "ring.capacity": {ringX, ringY + 36}, "ring.tray": {453, 234},
	"first.ring": {ringX, 62},
	"wire.title": {wireX, 28}, "wire.proto": {wireX, 48}, "wire.bytes": {wireX, 442}, "wire.n": {wireX, 470},
	"wire.streams": {wireX, 488}, "wire.others": {wireX, 506},
}

// nodes are the goroutines of a lane, and stops the places in it where copies stand or turn, by how far they are in it.
var (
	nodes = map[string]float64{
		"process": 109, "serve": 227, "distribute": 308, "pop": 258, "offer": 43, "run": -8,
	}
	stops = map[string]float64{
		"leaves": 231, "flagged": 212, // a copy that leaves the server; before the flag of a story's client
		"enters": 302, "handed": 284, "taken": 30, "called": 16, // of a listener
		"keys": 176, "worked": -8, // of a workqueue
	}
)

// turns are points of ways where no token stands, and bends the control points of those that are curves.
var (
	turns = map[string][2]float64{
		"hub": {929, serverAxis}, "hub-in": {888, serverAxis}, "rest": {970, 236}, "rest-end": {1010, 236},
		"etcd-out":   {250, serverAxis},
		"indexer-in": {890, clientAxis}, "processor-in": {742, clientAxis}, "loop-in": {36, clientAxis},
		"wire-above": {wireX, 120}, "wire-below": {wireX, clientAxis - 34}, "wire-end": {wireX - 16, clientAxis},
		"pile": {209, 208}, "tray": {494, 242}, "tray-words": {438, 252},
	}
	bends = map[string][4]float64{
		"decode": {416, 102, 416, 153}, "decoded": {276, 153, 248, 204},
	}
)

// Geometry is what the page's script has to know to move things about.
var Geometry = map[string]any{
	"width": Width, "height": Height, "anchors": anchors, "pipes": pipes, "boxes": boxes,
	"ring":   map[string]float64{"x": ringX, "y": ringY, "out": ringOut, "in": ringIn},
	"lane":   map[string]float64{"height": laneHeight, "room": watcherLanes},
	"listen": map[string]float64{"height": listenerHeight, "room": listenerLanes},
	"wireX":  wireX, "loopX": loopX, "serverAxis": serverAxis, "clientAxis": clientAxis,
	"maxSlots": maxSlots, "laneAxis": laneAxis, "nodes": nodes, "stops": stops, "turns": turns, "bends": bends,
	"flag": map[string][2]float64{"wide": {224, 9}, "tall": {121, -3}}, // of a story's client, in its lane
	"tall": map[string]any{
		"width": tallWidth, "height": tallHeight, "boxes": tallBoxes(), "wireX": tallWireX, "wireY": tallWireY,
		"loopX": tallLoopX, "door": tallDoor,
	},
}

// rails are the static tracks between stations.
var rails = []string{
	fmt.Sprintf("M52 %v H36 Q%v %v %v %v V%v Q%v %v 36 %v H52", clientAxis, loopX, clientAxis, loopX, clientAxis-14,
		serverAxis+14, loopX, serverAxis, serverAxis),
	fmt.Sprintf("M148 %v H168", serverAxis),
	fmt.Sprintf("M250 %v C262 %v 258 102 276 102", serverAxis, serverAxis),
	"M366 102 C416 102 416 153 352 153 C276 153 248 204 276 204",
	fmt.Sprintf("M366 204 H%v", ringX-ringOut+4),
	fmt.Sprintf("M%v %v H636", ringX+ringOut, ringY),
	fmt.Sprintf("M766 %v H786", serverAxis),
	fmt.Sprintf("M858 %v H888", serverAxis),
	fmt.Sprintf("M%v 70 V%v Q%v %v %v %v H1186", wireX, clientAxis-16, wireX, clientAxis, wireX-16, clientAxis),
	fmt.Sprintf("M1050 %v H1026", clientAxis),
	fmt.Sprintf("M906 %v H882", clientAxis),
	fmt.Sprintf("M758 %v H742", clientAxis),
}

// chevrons say which way a rail runs: where, and by how many degrees it turns from rightward.
var chevrons = [][3]float64{
	{158, serverAxis, 0}, {259, 116, -35}, {433, 204, 0}, {624, ringY, 0}, {776, serverAxis, 0}, {873, serverAxis, 0},
	{wireX, 200, 90}, {wireX, 330, 90}, {1214, clientAxis, 180}, {1038, clientAxis, 180}, {890, clientAxis, 180},
	{750, clientAxis, 180},
	{loopX, 330, -90}, {loopX, 200, -90},
}

// Spot, At, Rect and moved are the attributes that place an element.
func Spot(name string) templ.Attributes {
	at, known := spots[name]
	if !known {
		panic("stage: there is no spot " + name) // of a template: a test renders it
	}
	return At(at[0], at[1])
}

func At(x, y float64) templ.Attributes { return templ.Attributes{"x": Num(x), "y": Num(y)} }

func Rect(x, y, w, h, r float64) templ.Attributes {
	return templ.Attributes{"x": Num(x), "y": Num(y), "width": Num(w), "height": Num(h), "rx": Num(r)}
}

func moved(x, y float64) templ.Attributes {
	return templ.Attributes{"transform": fmt.Sprintf("translate(%v %v)", Num(x), Num(y))}
}

// Num writes a number as an attribute, with two places.
func Num(v float64) string { return fmt.Sprint(math.Round(v*100) / 100) }

// gateAt is where the gate of a station is drawn, and by how many degrees it is turned: across the way by which events
// come.
func gateAt(station probe.Station) (x, y, turn float64) {
	b := boxes[string(station)]
	switch {
	case station == probe.Wire:
		return wireX, serverBottom + 10, 90
	case b.Y > serverBottom:
		return b.Right() + 8, clientAxis, 0
	}
	return b.X - 9, serverAxis, 0
}

// gateTransform places and turns the gate of a station.
func gateTransform(station probe.Station) string {
	x, y, turn := gateAt(station)
	return fmt.Sprintf("translate(%v %v) rotate(%v)", Num(x), Num(y), turn)
}

// rect is a box as the attributes of a rectangle, inside one that is smaller by so much on each side.
func (b box) rect(radius float64) templ.Attributes { return Rect(b.X, b.Y, b.W, b.H, radius) }

func (b box) inside(by float64) box { return box{b.X + by, b.Y + by, b.W - 2*by, b.H - 2*by, ""} }

func movedTo(spot string) templ.Attributes { return moved(spots[spot][0], spots[spot][1]) }

// What is drawn of stations besides their boxes.
const (
	hubRadius       = 21.0
	lidY, lidHeight = 84.0, 12.0 // of etcd
	legendTop       = 259.0
	legendTwin      = "translate(961 266) scale(0.55)"
)

var (
	cacher     = box{778, 62, 176, 184, ""} // around incoming and dispatch
	budget     = box{786, 218, 160, 18, ""}
	tray       = box{430, 219, 46, 20, ""}
	legendCell = box{1055, legendTop, 6, 14, ""}
)

// drawings are paths by what they are of; those of lanes are relative to the lane.
var drawings = map[string]string{
	"etcd":      "M168 84 V224 A41 12 0 0 0 250 224 V84",
	"etcd.ribs": "M168 178 A41 12 0 0 0 250 178 M168 201 A41 12 0 0 0 250 201",
	"hub":       "M897 130H919M912 123L919 130L912 137",
	"rest":      "M970 236H1280M929 130C950 130 948 236 970 236",
	"processor": "M728 414H704M704 414L682 388M704 414H680M704 414L682 440" +
		"M688 386L682 388L684 394M684 409L680 414L684 419M684 434L682 440L688 442",
	"watcher.link": "M104 26H114", "watcher.out": "M218 26H270",
	"listener.link": "M262 26H252M50 26H40", "listener.out": "M-4 26H-14", "handler.out": "M-3 26H-13",
}

// workerWay is the way of one of the workers that decode.
func workerWay(i float64) string {
	from, to := 127+i*5.4, 150+i*0.6
	return fmt.Sprintf("M412 %v C392 %v 372 %v 344 %v", from, from, to, to)
}

// legendSigns are those of tokens. An open one has yet to be decoded, or is a name in a workqueue.
var legendSigns = []struct {
	x                  float64
	sign, class, means string
}{
	{56, "added", "", "created"}, {146, "modified", "", "changed"}, {240, "deleted", "", "deleted"},
	{330, "added", "waits", "waits in a queue"}, {480, "bookmark", "", "bookmark"},
	{582, "synthetic", "", "not decoded, or only a name"}, {822, "added", "with-handler", "with a handler"},
}

// firstRails are the ways of a change on the page's first view, through the stations that have no name there.
var firstRails = []string{
	"M44 358C40 358 40 414 36 414Q22 414 22 400V144Q22 130 36 130H168",
	"M250 130H308C333 130 334 143 340 143C346 143 347 156 364 156H448", "M612 156H701C733 156 733 130 766 130H888",
	"M1240 88V398Q1240 414 1224 414H668",
	"M668 414C661 414 661 358 654 358H44", "M668 414C661 414 661 399 654 399H240C214 399 214 358 188 358",
}
