package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
	"listwatch/internal/observe/recording"
)

// maxExport is how many bytes an export may have: what is read over a slow line, or sent.
const maxExport = 12 << 20

// exported writes an export and returns what is in it, by path with slashes.
func exported(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	var stdout, stderr strings.Builder
	if status := run(context.Background(), []string{"-export", dir}, &stdout, &stderr); status != exitOK ||
		!strings.Contains(stdout.String(), "index.html") || stderr.Len() > 0 {
		t.Fatalf("exit status %d, said %q and %q", status, stdout.String(), stderr.String())
	}
	files := make(map[string]string)
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		files[name] = string(text)
		return err
	})
	require.NoError(t, err)
	return files
}

var (
	linkInExport   = regexp.MustCompile(` (?:href|src|data-frame|data-whole)="([^"]*)"`)
	anchorInExport = regexp.MustCompile(` id="([^"]*)"`)
)

// TestAnExportIsWholeAndSmall follows every link of every page, to the place in the page, and looks for what an export
// must not hold. With FULL=1 it makes it twice.
func TestAnExportIsWholeAndSmall(t *testing.T) {
	files := exported(t)
	anchors := make(map[string]bool)
	size, pages := 0, 0
	for name, text := range files {
		size += len(text)
		for _, each := range anchorInExport.FindAllStringSubmatch(text, -1) {
			anchors[name+"#"+each[1]] = true
		}
	}
	here, _ := os.Getwd()
	for name, text := range files {
		assert.True(t, !strings.Contains(text, here) && !strings.Contains(text, "vscode:"),
			"%s names a folder of this machine", name)
		if path.Ext(name) != ".html" {
			continue
		}
		pages++
		scripts := `'self' file:;`
		if name == "index.html" {
			scripts = `'self' file: 'wasm-unsafe-eval'; worker-src blob:;` // it can run the machine
		}
		assert.True(t, strings.Contains(text, `"Content-Security-Policy" content="default-src 'none'; script-src `+scripts) &&
			strings.Count(text, "unsafe-") == strings.Count(scripts, "unsafe-"), "%s has no strict policy", name)
		for _, each := range linkInExport.FindAllStringSubmatch(text, -1) {
			target, err := url.Parse(strings.ReplaceAll(each[1], "&amp;", "&"))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if target.Scheme == "https" {
				continue
			}
			file := path.Join(path.Dir(name), target.Path)
			if target.Path == "" {
				file = name
			}
			if _, ok := files[file]; !ok || target.Scheme != "" {
				t.Errorf("%s links to %s, which is not there", name, each[1])
			}
			if target.Fragment != "" && path.Base(file) != "index.html" && !anchors[file+"#"+target.Fragment] {
				t.Errorf("%s links to %s, which has no such place", name, each[1])
			}
		}
	}
	t.Logf("%d files, %d pages, %d bytes", len(files), pages, size)
	assert.True(t, size <= maxExport && pages >= 250, "%d pages, %d bytes; want at most %d", pages, size, maxExport)
	if os.Getenv("FULL") == "" {
		return
	}
	for name, text := range exported(t) {
		assert.Equal(t, files[name], text, "%s is another one the second time", name)
	}
}

// TestAPageOfOneRecordingHoldsNoSecret exports a recording that another program wrote, and unpacks what the page brings
// along.
func TestAPageOfOneRecordingHoldsNoSecret(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "log.gz"), filepath.Join(dir, "one.html")
	var plain bytes.Buffer // what an older program wrote
	records := []probe.Record{{Seq: 1, Time: time.Millisecond, Point: probe.KnobTurned,
		Text: "hidden-here-and-only-here"}}
	require.NoError(t, recording.WriteAll(&plain, recording.NewHeader(time.Unix(0, 0), nil), records))
	written := strings.Replace(unpack(t, plain.Bytes()), "hidden-here-and-only-here", "Authorization: Bearer s3cret", 1)
	plain.Reset()
	zip := gzip.NewWriter(&plain)
	_, err := zip.Write([]byte(written))
	if err == nil {
		err = zip.Close()
	}
	if err == nil {
		err = os.WriteFile(from, plain.Bytes(), 0o600)
	}
	require.NoError(t, err)
	var stdout, stderr strings.Builder
	if status := run(context.Background(), []string{"-export", to, "-replay", from}, &stdout,
		&stderr); status != exitOK {
		t.Fatalf("exit status %d: %s", status, stderr.String())
	}
	page, err := os.ReadFile(to)
	require.NoError(t, err)
	match := regexp.MustCompile(`listwatchFile\("takes/recording", "([^"]*)"\)`).FindSubmatch(page)
	require.True(t, match != nil, "the page holds no recording")
	packed, err := base64.StdEncoding.DecodeString(string(match[1]))
	require.NoError(t, err)
	if text := unpack(t, packed); strings.Contains(text, "s3cret") || !strings.Contains(text, "Authorization: ***") {
		t.Errorf("the recording in the page says\n%s", text)
	}
	for _, elsewhere := range []string{` src="`, `<link`, `href="book/`} {
		assert.False(t, strings.Contains(string(page), elsewhere), "the page needs another file: %s", elsewhere)
	}
}

func unpack(t *testing.T, packed []byte) string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	text, err := io.ReadAll(zip)
	require.NoError(t, err)
	return string(text)
}
