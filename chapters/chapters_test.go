package chapters

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

func TestChaptersAreListedInReadingOrder(t *testing.T) {
	fsys := fstest.MapFS{
		"10-deltafifo/README.md":     {Data: []byte("intro\n\n# 10 · The queue that remembers why\n")},
		"10-deltafifo/a_test.go":     {Data: []byte("package deltafifo_test\n")},
		"10-deltafifo/doc.go":        {Data: []byte("package deltafifo\n")},
		"02-etcd3/store.go":          {Data: []byte("package etcd3\n")},
		"02-etcd3/README.md":         {Data: []byte("no heading\n")},
		"03-reflector/README.md":     {Data: []byte("# Reflector\n")},
		"chapters.go":                {Data: []byte("package chapters\n")},
		"figures/README.md":          {Data: []byte("# 99 · not a chapter\n")},
		"04-watchcache/testdata/x.y": {Data: []byte("x")},
	}
	got, err := List(fsys)
	require.NoError(t, err)
	want := []Chapter{
		{Number: 2, Folder: "02-etcd3", Title: "etcd3", Package: "etcd3"},
		{Number: 3, Folder: "03-reflector", Title: "Reflector"},
		{Number: 4, Folder: "04-watchcache"},
		{Number: 10, Folder: "10-deltafifo", Title: "The queue that remembers why", Package: "deltafifo"},
	}
	assert.NoDiff(t, got, want, "chapters")
}

func TestAFileThatIsNotGoIsAnError(t *testing.T) {
	fsys := fstest.MapFS{"01-storage/doc.go": {Data: []byte("pakcage storage\n")}}
	_, err := List(fsys)
	assert.True(t, err != nil, "got no error for a broken package clause")
}

func TestTheEmbeddedCourseHasItsFirstChapter(t *testing.T) {
	list, err := List(FS())
	require.NoError(t, err)
	require.True(t, len(list) != 0 && list[0].Folder == "01-storage" && list[0].Package == "storage",
		"got %+v, want 01-storage first", list)
	for i, chapter := range list {
		assert.Equal(t, chapter.Number, i+1, "chapter %d has number %d: numbers have no gaps", i+1, chapter.Number)
		_, err := fs.Stat(FS(), chapter.Folder+"/README.md")
		assert.NoError(t, err, chapter.Folder)
	}
}
