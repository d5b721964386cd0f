package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"io"
	"os"
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
