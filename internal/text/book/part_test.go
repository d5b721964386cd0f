package book

import (
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// TestWordsAreMarkedOnceInASection: in prose, as code and as a link, but in no heading, no sample and no chapter where
// they mean another thing.
func TestWordsAreMarkedOnceInASection(t *testing.T) {
	readme :=
		"# 06 · Cacher\n\n## The ring\n\nThe ring feeds `input`, and the Ring and `input` again.\n[The rest of the " +
			"ring](../06-cacher/README.md#more) is incoming,\nnot `incoming` itself.\n" +
			"\n```\nring\n```\n\n## More\n\n**[ring](../06-cacher/README.md#more)**, in two rings\nof words. An indexer; earrings.\n"
	b, err := New(fstest.MapFS{"06-cacher/README.md": {Data: []byte(readme)},
		"06-cacher/doc.go": {Data: []byte("package cacher\n")}}, nil)
	require.NoError(t, err)
	html := b.Chapters[0].HTML
	got := regexp.MustCompile(`<span data-part="[^>]*>.*?</span>`).FindAllString(html, -1)
	want := []string{
		`<span data-part="ring" data-kind="kept" tabindex="0">ring</span>`,
		`<span data-part="input" data-kind="queue" tabindex="0"><code>input</code></span>`,
		`<span data-part="incoming" data-kind="queue" tabindex="0"><code>incoming</code></span>`,
		`<span data-part="ring" data-kind="kept"><a href="/book/06-cacher#more">ring</a></span>`,
	}
	assert.EqualSlices(t, got, want, "got %q\nwant %q\nin %s", got, want, html)
	plain := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(html, "")
	if !strings.Contains(plain, "The ring feeds input, and the Ring and input again.\n") || !strings.Contains(plain,
		"in two rings\nof words.") {
		t.Errorf("the text has changed: %s", plain)
	}
}
