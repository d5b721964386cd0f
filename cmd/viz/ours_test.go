package main

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

// written are the files that a flag makes, by flag.
var written = map[string]func(name string) error{
	"-kubeconfig": func(name string) error { return writeKubeconfig(name, "http://127.0.0.1:1") },
	"-record": func(name string) error {
		o := &options{record: name, end: &ending{}}
		stop, err := startRecording(o, nil, probe.NewLog(clock.RealClock{}, 4), io.Discard)
		if err == nil {
			err = stop()
		}
		return err
	},
}

// TestWhatIsNotOursIsLeftAlone puts something where each flag writes.
func TestWhatIsNotOursIsLeftAlone(t *testing.T) {
	for flag, write := range written {
		for name, put := range map[string]func(t *testing.T, file, other string) error{
			"a file of another program": func(_ *testing.T, file, _ string) error {
				return os.WriteFile(file, []byte("precious"), 0o644)
			},
			"a link to a file of another program": func(_ *testing.T, file, other string) error {
				return os.Symlink(other, file)
			},
			"a link to a file of ours": func(t *testing.T, file, other string) error {
				require.NoError(t, os.Remove(other))
				require.NoError(t, write(other))
				return os.Symlink(other, file)
			},
			"a link to nothing": func(_ *testing.T, file, other string) error { return os.Symlink(other+".no", file) },
			"a folder":          func(_ *testing.T, file, _ string) error { return os.Mkdir(file, 0o755) },
		} {
			t.Run(flag+" "+name, func(t *testing.T) {
				dir := t.TempDir()
				file, other := filepath.Join(dir, "file"), filepath.Join(dir, "other")
				require.NoError(t, os.WriteFile(other, []byte("precious"), 0o644))
				require.NoError(t, put(t, file, other))
				before := contents(t, dir)
				err := write(file)
				assert.True(t, err != nil && strings.Contains(err.Error(), file+" is "), "got %v", err)
				assert.Equal(t, before, contents(t, dir), "what is there")
			})
		}
	}
}

// contents is what lies in a folder, as text: names, what links lead to, modes and contents of files.
func contents(t *testing.T, dir string) string {
	t.Helper()
	entries := require.Value(os.ReadDir(dir))(t)
	var text strings.Builder
	for _, each := range entries {
		name := filepath.Join(dir, each.Name())
		to, _ := os.Readlink(name)   // "": no link
		body, _ := os.ReadFile(name) // nil: a folder, or a link to nothing
		text.WriteString(strings.Join([]string{each.Name(), each.Type().String(), to, string(body)}, " ") + "\n")
	}
	return text.String()
}

// TestWhatIsWrittenIsItsOwnersAlone writes a new file, over an empty one, and over one of ours that every user could
// read, has open, and has under a second name.
func TestWhatIsWrittenIsItsOwnersAlone(t *testing.T) {
	for flag, write := range written {
		dir := t.TempDir()
		fresh, empty, old := filepath.Join(dir, "fresh"), filepath.Join(dir, "empty"), filepath.Join(dir, "old")
		require.NoError(t, os.WriteFile(empty, nil, 0o644))
		require.NoError(t, write(old))
		require.NoError(t, os.Chmod(old, 0o644))
		require.NoError(t, os.Link(old, old+"2"))
		kept := require.Value(os.Stat(old))(t)
		for _, name := range []string{fresh, empty, old} {
			require.NoError(t, write(name), "%s %s", flag, name)
			info := require.Value(os.Stat(name))(t)
			mode := info.Mode().Perm()
			assert.True(t, mode == 0o600 || runtime.GOOS == "windows", "%s %s: mode %o, want 600", flag, name, mode)
			assert.False(t, os.SameFile(info, kept), "%s: written into a file that others can read", flag)
		}
		var names []string
		for _, each := range require.Value(os.ReadDir(dir))(t) {
			names = append(names, each.Name())
		}
		assert.True(t, slices.Equal(names, []string{"empty", "fresh", "old", "old2"}), "%s leaves %q", flag, names)
	}
}
