// Package fold turns the log of moments into the picture of the machine.
//
// What a page shows, live or replayed, is one function of the log: [State.Apply] over the records,
// from the beginning or from a state that was kept as JSON. The function knows the stations only through the table
// of points in package probe: a point's Op, Queue, Args and Opens say everything that a record does to the picture.
// The few facts that the table cannot say are in one place, [Resource.applySpecial].
//
// The page has the same function a second time, in viz/log/fold.js. The two are written to be read side by side,
// function by function, and are held together by a test: the same records must give the same picture.
//
// There is no goroutine and no lock in this package: a State belongs to its caller.
package fold
