package policy

import (
	"bytes"
	"slices"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/recording"
	"listwatch/internal/observe/takes"
)

// TestRecordingsAreFresh: the program warns of a recording that another table of points has written. Of those
// that it brings along it never has to.
func TestRecordingsAreFresh(t *testing.T) {
	for _, take := range slices.Concat(takes.All, takes.Stories) {
		rec, err := recording.Read(t.Context(), bytes.NewReader(take.File()))
		require.NoError(t, err)
		assert.Equal(t, rec.Header.Points, recording.PointsHash(),
			"%s: written with another table of points: run make recordings and commit the result", take.Name)
	}
}
