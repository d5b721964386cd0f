//go:build !generate

package probe

// A point that is not among the constants would shift the later ones, and no test would fail with a useful message.
func init() {
	if len(points) != int(declared) {
		panic("probe: constants.go is not of the rows in points.go: run make generate")
	}
}
