package export

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// TestAFolderThatIsNotOursIsLeftAlone checks that an export refuses a folder with others' files or with links.
func TestAFolderThatIsNotOursIsLeftAlone(t *testing.T) {
	const precious = "precious"
	for name, test := range map[string]struct {
		put  func(dir, other string) error
		want string
	}{
		"a file of another program": {func(dir, _ string) error {
			return os.WriteFile(filepath.Join(dir, "index.html"), []byte(precious), 0o644)
		}, "not an export"},
		"a mark of another program": {func(dir, _ string) error {
			return os.WriteFile(filepath.Join(dir, mark), []byte(precious), 0o644)
		}, "not an export"},
		"a link to such a folder": {func(dir, other string) error {
			return os.Symlink(other, dir)
		}, "is a link"},
		"a link to a file in an export": {func(dir, other string) error {
			return os.Symlink(filepath.Join(other, "index.html"), filepath.Join(dir, "index.html"))
		}, "is a link"},
		"a link to a folder in an export": {func(dir, other string) error {
			return os.Symlink(other, filepath.Join(dir, "book"))
		}, "is a link"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, other := filepath.Join(t.TempDir(), "dir"), t.TempDir()
			file := filepath.Join(other, "index.html")
			require.NoError(t, os.WriteFile(file, []byte(precious), 0o644))
			switch {
			case strings.Contains(name, "in an export"):
				require.NoError(t, require.Value(openOurs(dir))(t).Close())
			case name != "a link to such a folder":
				require.NoError(t, os.Mkdir(dir, 0o755))
			}
			require.NoError(t, test.put(dir, other))
			_, err := openOurs(dir)
			assert.True(t, err != nil && strings.Contains(err.Error(), test.want), "got %v", err)
			assert.Equal(t, precious, string(require.Value(os.ReadFile(file))(t)))
		})
	}
}

// TestAnExportReplacesItsFilesAndNoOthers writes a file twice. A hard link to the first and a foreign file must stay.
func TestAnExportReplacesItsFilesAndNoOthers(t *testing.T) {
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "second name")
	file, mine := filepath.Join(dir, "book", "a.html"), filepath.Join(dir, "mine.gz")
	for _, text := range []string{"first", "second"} {
		root := require.Value(openOurs(dir))(t)
		require.NoError(t, replace(root, "book/a.html", []byte(text)))
		require.NoError(t, root.Close())
		assert.Equal(t, text, string(require.Value(os.ReadFile(file))(t)))
		if text == "first" {
			require.NoError(t, os.Link(file, elsewhere))
			require.NoError(t, os.WriteFile(mine, nil, 0o644))
		}
	}
	assert.Equal(t, "first", string(require.Value(os.ReadFile(elsewhere))(t)), "under its second name")
	assert.NoError(t, assert.ErrorOf(os.Stat(mine)))
}
