package chapters

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

func TestChaptersAreListedInReadingOrder(t *testing.T) {
	fsys := fstest.MapFS{
		"10-deltafifo/doc.go":        {},
		"02-etcd3/store.go":          {},
		"chapters.go":                {},
		"figures/README.md":          {},
		"04-watchcache/testdata/x.y": {},
	}
	got := require.Value(List(fsys))(t)
	want := []Chapter{{2, "02-etcd3", "etcd3"}, {4, "04-watchcache", "watchcache"}, {10, "10-deltafifo", "deltafifo"}}
	assert.NoDiff(t, want, got, "chapters")
}

func TestTheEmbeddedCourseHasItsFirstChapter(t *testing.T) {
	list, err := List(FS())
	require.NoError(t, err)
	require.True(t, len(list) != 0 && list[0].Folder == "01-storage", "got %+v, want 01-storage first", list)
	for i, chapter := range list {
		assert.Equal(t, i+1, chapter.Number, "chapter %d has number %d: numbers have no gaps", i+1, chapter.Number)
		_, err := fs.Stat(FS(), chapter.Folder+"/README.md")
		assert.NoError(t, err, chapter.Folder)
		doc := require.Value(fs.ReadFile(FS(), chapter.Folder+"/doc.go"))(t)
		assert.True(t, strings.HasSuffix(string(doc), "\npackage "+chapter.Package+"\n"), "%s: package", chapter.Folder)
	}
}
