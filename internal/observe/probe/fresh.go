//go:build !generate

package probe

// init panics if points.go has another number of points than constants.go: each later constant would name a wrong row.
func init() {
	if len(points) != int(declared) {
		panic("probe: constants.go does not match the rows in points.go: run make generate")
	}
}
