// Package fold turns the records of the log into the picture of the machine.
//
// A page's picture, live or replayed, is one function of the log: [State.Apply] over the records, from the beginning or
// from a state that was saved as JSON. The function takes the effect of each record from the table of points in package
// probe: from the point's Op, Opens, Queue, Args, Waits and Until. [Resource.applySpecial] and [Resource.crowd] have
// the few effects that the table cannot express.
//
// The page implements this function again, in viz/log/fold.js. Both versions have almost the same functions, and a test
// checks that the same records give the same picture.
//
// There is no goroutine and no lock in this package: a State belongs to its caller.
package fold
