package chapters

import (
	"io/fs"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

func TestTheEmbeddedCourseHasItsFirstChapter(t *testing.T) {
	list := require.Value(List(FS()))(t)
	require.True(t, len(list) != 0 && list[0].Folder == "01-storage", "got %+v, want 01-storage first", list)
	for i, chapter := range list {
		assert.Equal(t, i+1, chapter.Number, "chapter %d has number %d: numbers have no gaps", i+1, chapter.Number)
		assert.NoError(t, assert.ErrorOf(fs.Stat(FS(), chapter.Folder+"/README.md")), chapter.Folder)
		doc := require.Value(fs.ReadFile(FS(), chapter.Folder+"/doc.go"))(t)
		assert.True(t, strings.HasSuffix(string(doc), "\npackage "+chapter.Package+"\n"), "%s: package", chapter.Folder)
	}
}
