// Package stage draws the path of an event and the state at the cursor: stations, queues, the ring, the tokens that
// move between them, and the sentence below. layout.go has the coordinates (tall.go: for narrow windows); scripts get
// those in [Geometry]. plan.js owns the tokens, and routes.js has a token's way for a record of each point.
package stage

import (
	"fmt"
	"math"

	"github.com/a-h/templ"

	"listwatch/internal/observe/probe"
)

// The stage is 1280 by 550 units, so that on the smallest projector one unit is one pixel and no text is smaller than
// 12 pixels. It has three places: etcd at the left, the API server, and the clients. Yours is the large one below;
// each other client is at the end of a lane. Events pass the server half from left to right, go down the wire from the
// lowest lane, and pass your client from right to left. Your client's writes go up at the left, around etcd, so the
// control loop is a loop on screen. Writes of other clients go around the top.
const (
	Width  = 1280
	Height = 550

	serverTop, serverBottom = 20.0, 286.0
	clientTop, clientBottom = 306.0, 546.0

	serverAxis, clientAxis = 162.0, 446.0 // y of the main rails of the two halves
	Top                    = serverTop    // the drawing lies between Top and Bottom
	Bottom                 = clientBottom

	loopX, wireX, askX = 10.0, 1080.0, 1272.0 // x of the upright rails between the halves

	laneHeight      = 42.0 // the height of a watcher's lane
	laneAxis        = 26.0 // y of the rail within a lane
	watcherLanes    = 5    // the number of watcher lanes that fit
	listenerHeight  = 41.0 // the height of a listener's lane, and of its handler's and workqueue's
	listenerLanes   = 4
	shelfRows       = 8
	shelfRowHeight  = 20.0
	shelfGap        = 22.0 // the gap between the upper and lower rows of a shelf, where events pass
	ringX, ringY    = 484.0, serverAxis
	ringOut, ringIn = 82.0, 60.0

	maxSlots = 32 // a pipe of at most this many slots is drawn slot by slot
)

// box is the rectangle of a station or of another part of the stage. Only a station has a Title.
type box struct {
	X, Y, W, H float64
	Title      string
}

// boxes are the boxes of stations, by name. "server-reflector" is the API server's own reflector.
var boxes = map[string]box{
	"http":             {136, 32, 176, 70, "HTTP"},
	"etcd":             {28, 84, 84, 188, "etcd"},
	"etcd3":            {136, 128, 176, 148, "watchChan"},
	"server-reflector": {320, 128, 74, 148, "reflector"},
	"ring":             {400, 66, 168, 210, "history ring"},
	"store":            {580, 66, 124, 210, "store"},
	"incoming":         {720, 66, 70, 210, "incoming"},
	"dispatch":         {800, 66, 68, 210, "dispatch"},
	"watcher":          {882, 66, 168, 210, "cacheWatchers"},
	"wire":             {1064, 66, 32, 250, "wire"},
	"reflector":        {1014, 352, 134, 186, "reflector"},
	"fifo":             {878, 352, 120, 186, "FIFO"},
	"indexer":          {738, 352, 124, 186, "indexer"},
	"processor":        {658, 352, 64, 186, "processor"},
	"listener":         {342, 352, 300, 186, "processorListeners"},
	"handler":          {230, 352, 96, 186, "handlers"},
	"workqueue":        {44, 352, 172, 186, "workqueues"},
}

// Boxes of parts that are not stations.
var (
	serverBox = box{128, serverTop, 932, serverBottom - serverTop, ""}
	clientBox = box{28, clientTop, 1132, clientBottom - clientTop, ""}
	etcdBox   = box{22, 56, 96, serverBottom - 56, ""}
	guest     = box{218, 6, 164, 36, ""}     // the client at the end of a lane, relative to the lane
	visitor   = box{1100, 240, 164, 36, ""}  // a client without a lane
	ghost     = box{1170, 412, 104, 132, ""} // another server, where a story's client watches
	panes     = box{44, 352, 818, 186, ""}   // a story's comparison
	crowd     = box{888, 70, 370, 34, ""}    // one dot for each client, in the place of the last lane
)

// FirstResource is the resource on stage until the viewer chooses another one.
const FirstResource = "pods"

// Title returns the title of a station, or "" if there is no such station.
func Title(station probe.Station) string { return boxes[string(station)].Title }

// Right and Bottom are the box's far edges; CX is its horizontal center.
func (b box) Right() float64  { return b.X + b.W }
func (b box) Bottom() float64 { return b.Y + b.H }
func (b box) CX() float64     { return b.X + b.W/2 }

// grip is a knob's handle on the stage: its place, its sign, its sign while it is pressed (Shut), and the place of the
// text about its effect (Says). One press moves a slider by By values. Places in a lane are relative to the lane.
type grip struct {
	X, Y       float64
	Sign, Shut string
	By         int
	Says       [2]float64
	Anchor     string
}

// grips are the knobs' handles on the stage, by knob (stories/hands.js). Other knobs have none.
var grips = map[string]grip{
	"etcd.restart":  {70, 130, "M-6 4A7 7 0 1 1 0 7M-9 0L-6 5L-2 1", "", 0, [2]float64{70, 252}, "mid"},
	"ring.capacity": {550, 228, "M-6 -6L6 6M-6 0V-6H0M6 0V6H0", "", -1, [2]float64{568, 268}, "right"},
	"line.drop": {174, 26, "M1 -6H3A6 6 0 0 1 3 6H1ZM1 -3H-4M1 3H-4M9 0H13", "", 0,
		[2]float64{guest.X + 8, guest.Y + 31}, ""},
	"line.stall": {205, 26, "M-9 0Q0 -10 9 0Q0 10 -9 0ZM-2 0A2 2 0 1 0 2 0A2 2 0 1 0 -2 0",
		"M-9 -1Q0 9 9 -1M-6 3L-8 6M0 5V9M6 3L8 6", 0, [2]float64{guest.X + 8, guest.Y + 31}, ""},
	"handler.delay": {97, 26, "M-2 -9V9M2 -9V9", "", 1, [2]float64{48, 9}, "mid"},
}

const gripSize = 31.0 // units: at least 24 pixels in the smallest window that shows the stage beside the list of knobs

// pipe is the place of a queue and of its length; without a NumAnchor, the length is not written.
type pipe struct {
	X, Y, W, H float64
	NumX, NumY float64
	NumAnchor  string
}

// pipes are the places of queues, by name. Those in a lane are relative to the lane.
var pipes = map[string]pipe{
	"etcd3-incoming": {144, 154, 58, 16, 173, 186, "middle"},
	"etcd3-result":   {246, 154, 58, 16, 275, 186, "middle"},
	"incoming":       {724, 153, 64, 18, 756, 190, "middle"},
	"input":          {0, 18, 77, 16, 77, 12, "end"},
	"result":         {91, 18, 77, 16, 168, 12, "end"},
	"add":            {268, 17, 32, 18, 0, 0, ""},
	"pending":        {54, 17, 194, 18, 248, 12, "end"},
	"next":           {0, 17, 32, 18, 0, 0, ""},
	"fifo":           {886, 437, 104, 18, 938, 474, "middle"},
	"workqueue":      {0, 17, 172, 18, 172, 12, "end"},
}

// anchors are the fixed points between which tokens travel.
var anchors = map[string][2]float64{
	"http":             {240, 50},
	"etcd":             {70, serverAxis},
	"decode":           {224, serverAxis},
	"etcd3-out":        {304, serverAxis},
	"server-reflector": {357, serverAxis},
	"ring":             {ringX, ringY},
	"store":            {642, serverAxis}, // between the rows
	"incoming-out":     {788, serverAxis},
	"dispatch":         {832, serverAxis},
	"wire":             {wireX, (serverBottom + clientTop) / 2},
	"reflector":        {wireX, clientAxis},
	"indexer":          {800, clientAxis},
	"processor":        {690, clientAxis},
	"visitor":          {1264, 258},
	"workqueue":        {130, clientAxis},
}

// spots are the places of texts and small signs, by name.
var spots = map[string][2]float64{
	"server": {330, 40}, "server.about": {432, 40},
	"client": {44, 325}, "client.about": {206, 325}, "others": {1068, 44}, "etcd.title": {34, 76},
	"again": {800, 526}, "ghost": {1222, 434}, "ghost.rv": {1222, 497},
	"writes": {24, 32}, "asks": {1262, 44},
	"http.title": {144, 50}, "http.says": {312, 118}, "http.method": {144, 72}, "http.asks": {206, 72},
	"http.status": {144, 92}, "http.gets": {206, 92},
	"etcd.unit": {70, 194}, "etcd.rev": {70, 218}, "etcd.kind": {70, 236},
	"etcd.full": {70, 252}, "etcd.said": {70, 254},
	"etcd3.incoming": {142, 143}, "etcd3.decode": {184, 228}, "etcd3.workers": {238, 228},
	"etcd3.result": {230, 203}, "etcd3.error": {224, 264}, "etcd3-incoming.post": {152, 220},
	"etcd3-result.post": {152, 246}, "names.copy": {738, 340}, "names.code": {230, 340},
	"server-reflector.unit": {357, 200}, "server-reflector.rv": {357, 220},
	"store.lock":     {630, 44},
	"incoming.ready": {756, 136},
	"dispatch.to":    {864, 206}, "dispatch.role": {792, 226},
	"dispatch.budget": {792, 244}, "dispatch.lock": {838, 72},
	"watcher.input": {920, 56}, "watcher.result": {1011, 56}, "crowd.says": {1068, 62},
	"reflector.of": {1081, 372}, "reflector.state": {1081, 392}, "reflect.role": {1081, 411},
	"reflector.seen": {1081, 484}, "stream.post": {1012, 512}, "reflector.rv": {1081, 504},
	"fifo.order": {938, 382}, "process.role": {938, 405}, "fifo.lock": {968, 330}, "fifo.high": {938, 500},
	"fifo.left": {938, 519}, "fifo.out": {938, 533},
	"processor.each": {690, 382},
	"listener.more":  {342, 534},
	"workqueue.more": {44, 534},
	"store.n":        {702, 60}, "caching.role": {642, 272}, "watcher.n": {1050, 40}, "watcher.closed": {1050, 300},
	"indexer.n": {860, 346},
	"ring.unit": {ringX, ringY - 37}, "ring.newest": {ringX, ringY - 8}, "ring.range": {ringX, ringY + 16},
	"ring.capacity": {ringX, ringY + 36}, "ring.tray": {427, 265},
	"wire.title": {1176, 326}, "wire.proto": {1176, 346}, "wire.n": {1176, 366},
}

// stops are the places where tokens enter, leave or wait, as x relative to the lane.
var stops = map[string]float64{
	"process": 84, "leaves": 184, "guest": 190, // on a watcher's lane; "guest" is its client
	"enters": 302, "handed": 284, "taken": 30, "called": 16, // on a listener's lane
	"keys": 176, "worked": -8, // on a workqueue's lane
}

// turns are the points at which ways bend, and a few other places of tokens and texts.
var turns = map[string][2]float64{
	"hub": {853, serverAxis}, "hub-low": {853, serverAxis + 1}, "hub-left": {853, serverAxis + 2},
	"hub-in": {812, serverAxis}, "crowd-in": {884, 87},
	"etcd-door": {114, 116}, "http-door": {136, 88}, "http-in": {136, 40}, "http-top": {296, 32},
	"ring-in": {ringX - ringOut - 8, serverAxis}, "ring-near": {ringX - ringOut - 7, serverAxis},
	"store-out":  {704, serverAxis},
	"indexer-in": {870, clientAxis}, "processor-in": {722, clientAxis}, "processor-out": {658, clientAxis},
	"loop-in": {28, clientAxis}, "loop-low": {loopX, clientAxis - 12}, "loop-high": {loopX, 52}, "loop-out": {22, 40},
	"ask-up": {askX, 22}, "ask-top": {askX - 12, 10}, "ask-end": {308, 10}, "ask-down": {296, 22},
	"wire-above": {wireX, 140}, "wire-below": {wireX, 352},
	"tray": {427, 260}, "tray-words": {456, 264}, "wire-texts": {1256, 370},
}

// Geometry is the part of the layout that the page's scripts need.
var Geometry = map[string]any{
	"width": Width, "height": Height, "anchors": anchors, "pipes": pipes, "boxes": boxes,
	"ring":   map[string]float64{"x": ringX, "y": ringY, "out": ringOut, "in": ringIn},
	"lane":   map[string]float64{"height": laneHeight, "room": watcherLanes},
	"listen": map[string]float64{"height": listenerHeight, "room": listenerLanes},
	"wireX":  wireX, "askX": askX, "serverAxis": serverAxis, "clientAxis": clientAxis,
	"maxSlots": maxSlots, "laneAxis": laneAxis, "stops": stops, "turns": turns,
	"guest": guest, "crowd": crowd, "ghost": ghost, "panes": panes, "tall": map[string]any{
		"width": tallWidth, "height": tallHeight, "boxes": tallBoxes(), "turns": tallTurns,
	},
}

// rails are the SVG paths of the ways on which events travel between stations; asks are those of requests.
var (
	rails = []string{
		fmt.Sprintf("M112 %v H%v", serverAxis, ringX-ringOut),
		fmt.Sprintf("M%v %v H812", ringX+ringOut, serverAxis),
		fmt.Sprintf("M%v 276 V%v Q%v %v %v %v H722", wireX, clientAxis-14, wireX, clientAxis, wireX-14, clientAxis),
	}
	asks = []string{
		fmt.Sprintf("M44 %v H22 Q%v %v %v %v V52 Q%v 40 22 40 H136", clientAxis, loopX, clientAxis, loopX,
			clientAxis-12, loopX),
		fmt.Sprintf("M%v 218 V22 Q%v 10 %v 10 H308 Q296 10 296 22 V32", askX, askX, askX-12),
		"M136 88 C122 88 126 116 112 116",
	}
)

// chevrons show a rail's direction; each is x, y, and degrees clockwise from rightward.
var chevrons = [][3]float64{
	{126, serverAxis, 0}, {316, serverAxis, 0}, {396, serverAxis, 0}, {572, serverAxis, 0}, {712, serverAxis, 0},
	{wireX, 296, 90}, {wireX, 336, 90}, {1006, clientAxis, 180}, {870, clientAxis, 180}, {730, clientAxis, 180},
	{loopX, 330, -90}, {loopX, 200, -90}, {640, 10, 180}, {askX, 150, -90}, {125, 102, 120},
}

// Spot returns the attributes that place an element at the named spot. It panics if there is no such spot.
func Spot(name string) templ.Attributes {
	at, known := spots[name]
	if !known {
		panic("stage: there is no spot " + name) // a mistake in a template; a test renders all templates
	}
	return At(at[0], at[1])
}

// At returns the attributes that place an element at a point.
func At(x, y float64) templ.Attributes { return templ.Attributes{"x": Num(x), "y": Num(y)} }

// Rect returns the attributes of a rectangle with rounded corners.
func Rect(x, y, w, h, r float64) templ.Attributes {
	return templ.Attributes{"x": Num(x), "y": Num(y), "width": Num(w), "height": Num(h), "rx": Num(r)}
}

func moved(x, y float64) templ.Attributes {
	return templ.Attributes{"transform": fmt.Sprintf("translate(%v %v)", Num(x), Num(y))}
}

// Num formats a number for an attribute, rounded to two decimals.
func Num(v float64) string { return fmt.Sprint(math.Round(v*100) / 100) }

// gateAt returns the place of a station's gate, on the station's way in, and the gate's rotation in degrees.
func gateAt(station probe.Station) (x, y, turn float64) {
	b := boxes[string(station)]
	switch {
	case station == probe.Wire:
		return wireX, serverBottom + 10, 90
	case station == probe.HTTP:
		return b.X - 9, b.Y + b.H/2, 0
	case b.Y > serverBottom:
		return b.Right() + 8, clientAxis, 0
	}
	return b.X - 9, serverAxis, 0
}

// gateTransform returns the SVG transform that places and turns the gate of a station.
func gateTransform(station probe.Station) string {
	x, y, turn := gateAt(station)
	return fmt.Sprintf("translate(%v %v) rotate(%v)", Num(x), Num(y), turn)
}

// rect returns the attributes of the box's rectangle.
func (b box) rect(radius float64) templ.Attributes { return Rect(b.X, b.Y, b.W, b.H, radius) }

// inside returns the box, smaller by the given units on each of the four sides, without its title.
func (b box) inside(by float64) box { return box{b.X + by, b.Y + by, b.W - 2*by, b.H - 2*by, ""} }

// titleAt returns the attributes that place a station's title: at the spot NAME.title if it exists, or above the box.
func titleAt(name string) templ.Attributes {
	if _, own := spots[name+".title"]; own {
		return Spot(name + ".title")
	}
	return At(boxes[name].X+2, boxes[name].Y-6)
}

// rowY returns the y coordinate of a row of a shelf.
func rowY(b box, row int) float64 {
	y := b.Y + 4 + float64(row)*shelfRowHeight
	if row >= shelfRows/2 {
		y += shelfGap
	}
	return y
}

// wider returns the box, wider by the given units on the left and on the right, without its title.
func (b box) wider(by float64) box { return box{b.X - by, b.Y, b.W + 2*by, b.H, ""} }

func movedTo(spot string) templ.Attributes { return moved(spots[spot][0], spots[spot][1]) }

// Sizes of the hub and of etcd's cylinder, and the y of the legend's top.
const (
	hubRadius       = 20.0
	lidY, lidHeight = 96.0, 12.0 // etcd's cylinder
	legendTop       = 289.0
)

var (
	cacher = box{716, 66, 152, 210, ""} // around incoming and dispatch
	budget = box{726, 250, 132, 16, ""}
	tray   = box{404, 250, 46, 20, ""}
)

// drawings are SVG paths by name; a lane's paths are relative to the lane.
var drawings = map[string]string{
	"etcd":      "M28 96 V260 A42 12 0 0 0 112 260 V96",
	"etcd.ribs": "M28 240 A42 12 0 0 0 112 240",
	"hub":       "M822 162H842M835 155L842 162L835 169",
	"workers":   "M224 178V214",
	"visitor":   "M1272 258V218",
	"ghost":     "M1148 492H1186",
	"ghost.end": "M1186 446L1258 536M1258 446L1186 536",
	"again":     "M800 474V506H972V462M967 470L972 460L977 470",
	"crowd":     "M853 162C868 162 866 87 884 87",
	"processor": "M713 446H689M689 446L667 420M689 446H665M689 446L667 472" +
		"M671 418L667 420L669 426M669 441L665 446L669 451M669 466L667 472L673 474",
	"watcher.link": "M77 26H91", "watcher.out": "M168 26H218",
	"listener.out": "M302 26H-14", "handler.out": "M-3 26H-13",
}

// workerWay returns the path through the i-th decoding worker.
func workerWay(i float64) string {
	at := serverAxis + (i-4.5)*3.4
	return fmt.Sprintf("M204 %v C212 %v 210 %v 224 %v C238 %v 236 %v 244 %v", serverAxis, serverAxis, at, at, at,
		serverAxis, serverAxis)
}

// legendSigns are the tokens in the legend. The synthetic one is for Sync, Replaced, and records without a type.
var legendSigns = []struct {
	x                  float64
	sign, class, means string
}{
	{56, "added", "", "created"}, {146, "modified", "", "changed"}, {240, "deleted", "", "deleted"},
	{330, "added", "waits", "waits in a queue"}, {480, "bookmark", "", "bookmark"},
	{582, "synthetic", "", "not decoded, or only a name"}, {822, "added", "with-handler", "with a handler"},
	{954, "modified", "followed", "followed"},
}
