//go:build !generate

package probe

// init panics if points.go and constants.go differ in their number of points: constants would then name wrong rows.
func init() {
	if len(points) != int(declared) {
		panic("probe: constants.go does not match the rows in points.go: run make generate")
	}
}
