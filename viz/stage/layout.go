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

// Geometry is what the page's script has to know to move things about.
var Geometry = map[string]any{
	"width": Width, "height": Height, "anchors": anchors, "pipes": pipes, "boxes": boxes,
	"ring":   map[string]float64{"x": ringX, "y": ringY, "out": ringOut, "in": ringIn},
	"lane":   map[string]float64{"height": laneHeight, "room": watcherLanes},
	"listen": map[string]float64{"height": listenerHeight, "room": listenerLanes},
	"wireX":  wireX, "loopX": loopX, "serverAxis": serverAxis, "clientAxis": clientAxis,
	"maxSlots": maxSlots,
	"tall": map[string]any{
		"width": tallWidth, "height": tallHeight, "boxes": tallBoxes(), "wireX": tallWireX, "wireY": tallWireY,
		"loopX": tallLoopX,
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

// At, Rect and moved are the attributes that place an element.
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
