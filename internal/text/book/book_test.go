package book

import (
	"cmp"
	"flag"
	"fmt"
	"html"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"

	"listwatch/chapters"
	"listwatch/docs"
	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/rules"
	"listwatch/internal/text/source"
)

const ringReadme = `# 04 · The ring

## The question

How long does <b>history</b> last,
and *who* says so?

## The walk

We append.

[Ring.add](ring.go "code")

[Example_forget](ring_test.go "code")

<!-- made -->
` + "```go\nfunc Example_forget() {\n\n\tmade()\n```" + `
<!-- end -->

[Example_forget](ring_test.go "output")

> [!WARNING]
> Positions never ` + "`wrap`" + `.

**What wraps?**

<details><summary>Answer</summary>

Nothing, and ` + "`rv`" + ` neither.

</details>

See [chapter 06](../06-cacher/README.md#the-walk), [the file](ring.go), [the law](../../docs/CONTRIBUTING.md),
[upstream](https://example.com/?a=1&b=2).[^1]

| n | what |
|--:|------|
| 1 | <script>alert(1)</script> |

` + "```go\nvar x = \"<b>\" // y\n```\n\n```console\n$ go test ./...\nok\n```\n\n```\n a -> b\n```\n" + `
[^1]: A footnote.
`

const ringSource = `// Package ring is round.
package ring

import "listwatch/internal/observe/probe"

// Ring is a ring.
type Ring struct {
	probe *probe.Probe
	text  string
}

// add appends "<i>".
//
// Upstream: k8s.io/apiserver/pkg/storage/cacher/watch_cache.go: (*watchCache).updateCache
func (r *Ring) add() {
	r.text += ` + "`<b>\n</b>`" + `
	r.probe.At(probe.RingAppend, "", 0, 1, 2, 3, 4)
}
`

const ringExample = `package ring_test

// First try: it forgets.
func Example_forget() {
	fmt.Println("<2>")
	// Output:
	// <2>
	//   of 3
}
`

func course() fstest.MapFS {
	return fstest.MapFS{
		"04-ring/README.md":    {Data: []byte(ringReadme)},
		"04-ring/ring.go":      {Data: []byte(ringSource)},
		"04-ring/ring_test.go": {Data: []byte(ringExample)},
		"06-cacher/README.md":  {Data: []byte("# 06 · Cacher\n\n## The question\n\nWhy?\n\n## The walk\n\nSo.\n")},
		"06-cacher/doc.go":     {Data: []byte("package cacher\n")},
	}
}

func open(t *testing.T, fsys fstest.MapFS) *Book {
	t.Helper()
	return require.Value(New(fsys, nil))(t)
}

func TestAChapterBecomesAPage(t *testing.T) {
	fsys := course()
	fsys["04-ring/README.md"].Data = []byte(strings.NewReplacer("<b>history</b>", "history",
		"<script>alert(1)</script>", "x").Replace(ringReadme))
	book := open(t, fsys)
	assert.NoError(t, book.Problems)
	chapter := book.Chapters[0]
	assert.True(t, chapter.Title == "The ring" && chapter.Question == "How long does history last, and who says so?",
		"got title %q, question %q", chapter.Title, chapter.Question)
	want := []Heading{{2, "the-question", "The question"}, {2, "the-walk", "The walk"}}
	assert.Equal(t, "", gocmp.Diff(want, chapter.Contents), "contents (-want +got):\n")
	for _, part := range []string{
		`<figure class="decl" id="Ring.add">`,
		`href="/book/04-ring/ring.go#L15">ring.go:15</a>`,
		`<a href="https://github.com/kubernetes/kubernetes/blob/v1.37.2/staging/src/k8s.io/apiserver/pkg/storage/` +
			`cacher/watch_cache.go" rel="noreferrer" ` +
			`title="k8s.io/apiserver/pkg/storage/cacher/watch_cache.go">(*watchCache).updateCache</a>`,
		`<span class="l" data-n="12"><span class="c">// add appends &#34;&lt;i&gt;&#34;.</span>`,
		`<span class="l told" data-point="RingAppend" data-tabs="1" data-n="18">`,
		`<span class="k">func</span> (r *Ring) <span class="d">add</span>() {`,
		"<blockquote>\n<p><strong>Warning.</strong>\nPositions never <code>wrap</code>.</p>\n</blockquote>",
		`<details class="answer"><summary>Answer</summary>` + "\n<p>Nothing, and <code>rv</code> " +
			"neither.</p>\n</details>",
		`<span class="s">&#34;&lt;2&gt;&#34;</span>)` + "\n</span></code></pre>",
		`<summary>What it prints</summary>` + "\n" + `<pre class="session" tabindex="0">&lt;2&gt;` + "\n  of 3</pre>",
		`<a href="/book/06-cacher#the-walk">chapter 06</a>`,
		`<a href="/book/04-ring/ring.go">the file</a>`,
		`<span class="outside">the law</span>`,
		`<a href="https://example.com/?a=1&amp;b=2" rel="noreferrer">upstream</a>`,
		`<td align="right">1</td>`,
		`<span class="k">var</span> x = <span class="s">&#34;&lt;b&gt;&#34;</span> <span class="c">// y</span>`,
		`<span class="prompt">$ go test ./...</span>` + "\nok", ` a -&gt; b</pre>`, "A footnote.",
	} {
		assert.True(t, strings.Contains(chapter.HTML, part), "%s is missing", part)
	}
	for _, part := range []string{"<h1", "style=", "<script", "[!WARNING]", "README.md", "made", "omitted"} {
		assert.False(t, strings.Contains(chapter.HTML, part), "%s is there", part)
	}
	if t.Failed() {
		t.Log(chapter.HTML)
	}
}

func TestChaptersKnowTheirNeighboursAndFiles(t *testing.T) {
	book := open(t, course())
	ring, cacher := book.Chapters[0], book.Chapters[1]
	assert.True(t, ring.Previous == nil && ring.Next == cacher && cacher.Previous == ring && cacher.Next == nil,
		"previous and next are wrong")
	assert.True(t, len(ring.Files) == 2 && ring.Files[0].Name == "ring.go" && ring.Files[1].Test,
		"got files %+v", ring.Files)
}

func TestWhatAChapterGetsWrongIsReportedWithItsLine(t *testing.T) {
	const begins = "<details><summary>Answer</summary>\n\nIt is."
	tests := []struct{ name, prose, want string }{
		{"unknown symbol", "[Ring.gone](ring.go \"code\")", "line: Ring.gone is not declared in 04-ring"},
		{"wrong file", "[Ring.add](other.go \"code\")", "line: Ring.add is declared in 04-ring/ring.go, not in " +
			"04-ring/other.go"},
		{"unknown folder", "[Ring.add](../05-x/ring.go \"code\")", "line: Ring.add: there is no package in 05-x"},
		{"not alone", "[Ring.add](ring.go \"code\") and more", "line: a code link stands alone in its paragraph"},
		{"no output", "[Ring](ring.go \"output\")", "line: Ring has no output"},
		{"dead chapter", "[x](../07-x/README.md)",
			"line: link to ../07-x/README.md: open 07-x/README.md: file does not exist"},
		{"dead file", "[x](gone.go)", "line: link to gone.go: open 04-ring/gone.go: file does not exist"},
		{"script link", "[x](javascript:alert)",
			"line: link to javascript:alert: only http and https lead out of the book"},
		{"raw HTML", "a <b>b</b>", "line: raw HTML is dropped"},
		{"another fold", "<details><summary>More</summary>\n\nx\n\n</details>", "line: raw HTML is dropped"},
		{"an answer without an end", begins, "line: the answer has no end"},
		{"an end without an answer", "</details>", "line: raw HTML is dropped"},
		{"an answer in a list", "- " + begins + "\n\n  </details>", "line: raw HTML is dropped"},
		{"image", "![x](x.png)", "line: an image: draw it as an SVG file, or in a code fence"},
		{"drawing that is not there", "![x](x.svg)", "line: x.svg: open 04-ring/x.svg: file does not exist"},
		{"drawing that does something", "![x](y.svg)", `line: y.svg: a drawing has no " onclick="`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fsys := course()
			fsys["04-ring/README.md"].Data = []byte("# 04 · R\n\nfine\n\n" + test.prose + "\n")
			fsys["04-ring/y.svg"] = &fstest.MapFile{Data: []byte(`<svg><g onclick="x()"/></svg>`)}
			err := open(t, fsys).Problems
			require.True(t, err != nil, "got no problem")
			want := strings.Replace(test.want, "line", "chapters/04-ring/README.md:5", 1)
			first, _, _ := strings.Cut(err.Error(), "\n")
			assert.Equal(t, want, first, "got %s\nwant %s", first, want)
		})
	}
	t.Run("no prose", func(t *testing.T) {
		fsys := course()
		delete(fsys, "06-cacher/README.md")
		fsys["04-ring/README.md"].Data = []byte("# 04 · R\n")
		err := open(t, fsys).Problems
		assert.True(t, err != nil &&
			strings.Contains(err.Error(), "chapters/06-cacher/README.md: "+"the chapter has no prose"), "got %v", err)
	})
}

var tags = regexp.MustCompile(`<[^>]*>`)

func FuzzHighlightingLosesNothing(f *testing.F) {
	f.Add(ringSource)
	f.Add("not go at all: ` \" ' /* \x00 \xff")
	f.Add("\x860") // not valid UTF-8
	f.Add("")
	f.Add("a\r\nb /* c\r\nd */ 'x' ;;")
	f.Fuzz(func(t *testing.T, src string) {
		lines := highlight(src)
		got := html.UnescapeString(tags.ReplaceAllString(strings.Join(lines, "\n"), ""))
		assert.Equal(t, html.UnescapeString(html.EscapeString(src)), got)
	})
}

func TestTheEmbeddedChaptersAreWithoutProblems(t *testing.T) {
	assert.NoError(t, require.Value(New(chapters.FS(), docs.FS()))(t).Problems)
}

// chapterMinutes is the maximum time, in minutes, for a chapter with its exercises.
const chapterMinutes = 60

// chapterLimits overrides chapterMinutes for some chapters, by number.
var chapterLimits = map[int]int{6: 50, 14: 70, 15: 20}

// bookWords is the maximum number of words of prose and tables in all chapters together.
const bookWords = 33_500

func TestChaptersAreReadInAnHour(t *testing.T) {
	book := require.Value(New(chapters.FS(), docs.FS()))(t)
	words := 0
	for _, chapter := range book.Chapters {
		words += said(chapter.HTML)
		limit := cmp.Or(chapterLimits[chapter.Number], chapterMinutes)
		got := minutes(chapter.HTML)
		assert.True(t, got > 5 && got <= float64(limit), "%s takes %.1f minutes, want at most %d", chapter.Folder, got,
			limit)
		t.Logf("%s takes %.1f minutes", chapter.Folder, got)
	}
	t.Logf("the chapters have %d words", words)
	assert.True(t, words <= bookWords, "the chapters have %d words together, want at most %d", words, bookWords)
}

var (
	folded = regexp.MustCompile(`(?s)<details class="answer"><summary>All of .*?</details>`)
	asked  = regexp.MustCompile(`<summary>Answer(?:</summary>\s*<pre class="session" tabindex="0"><code>)?` +
		`|"><code><span class="prompt">`)
	comment = regexp.MustCompile(`<span class="c">// ?([^<]*)</span>`)
	codes   = regexp.MustCompile(`(?s)<pre class="code".*?</pre>`)
	quoted  = regexp.MustCompile(`(?s)<(figcaption|pre|summary|svg)\b.*?</(figcaption|pre|summary|svg)>`)
)

// minutes returns the time that a reader needs to understand a page: 220 words of prose a minute, 180 of comments, 12
// lines of code, and two minutes for each answer and each session; a session that begins an answer counts as part of
// it. The function leaves out declarations that are folded as a whole.
func minutes(page string) float64 {
	page = folded.ReplaceAllString(page, "")
	code := strings.Join(codes.FindAllString(page, -1), "")
	said := 0
	for _, found := range comment.FindAllStringSubmatch(code, -1) {
		said += len(strings.Fields(found[1]))
	}
	lines := 0
	for line := range strings.Lines(tags.ReplaceAllString(comment.ReplaceAllString(code, ""), "")) {
		if strings.TrimSpace(line) != "" {
			lines++
		}
	}
	prose := len(strings.Fields(tags.ReplaceAllString(quoted.ReplaceAllString(page, ""), "")))
	return float64(prose)/220 + float64(said)/180 + float64(lines)/12 + 2*float64(len(asked.FindAllString(page, -1)))
}

// TestEachChapterEndsWithWhatOneKnows checks that each chapter ends with three lines of summary, before any appendix.
func TestEachChapterEndsWithWhatOneKnows(t *testing.T) {
	for _, chapter := range require.Value(chapters.List(chapters.FS()))(t) {
		text, _, _ := strings.Cut(read(t, chapter.Folder+"/README.md"), "\n## Appendix\n")
		_, ends, _ := strings.Cut(text, "\n## What you know now\n")
		assert.True(t, strings.Count(ends, "\n- ") == 3 && !strings.Contains(ends, "\n#"), "%s ends with %q",
			chapter.Folder, ends)
	}
}

// TestTheShortWholeHasEachPromiseOnce: OVERVIEW has each promise once. Reading it takes at most fifteen minutes,
// including one for each of its six pictures.
func TestTheShortWholeHasEachPromiseOnce(t *testing.T) {
	book := require.Value(New(chapters.FS(), docs.FS()))(t)
	whole := book.Documents[0]
	assert.Equal(t, Documents+"OVERVIEW", whole.Path)
	for _, rule := range rules.All {
		assert.Equal(t, 1, strings.Count(whole.HTML, fmt.Sprintf("<em>Promise %d:</em>", rule.Number)), rule.Text)
	}
	pictures := strings.Count(whole.HTML, `class="drawn"`)
	assert.Equal(t, 6, pictures)
	got := minutes(whole.HTML) + float64(pictures)
	assert.True(t, got <= 15, "it takes %.1f minutes", got)
}

// docsPages and docsWords are the maximum numbers of pages of docs/, and of their words of prose and tables. Neither
// counts CHANGES and the generated pages.
const (
	docsPages = 15
	docsWords = 29_000
)

func TestOldNamesOfHeadingsLeadToTheHeadings(t *testing.T) {
	book := require.Value(New(chapters.FS(), docs.FS()))(t)
	for _, chapter := range book.Chapters {
		old := strings.Count(chapter.HTML, `<a id="what-upstream-does-more"></a><h2 id="what-else-upstream-does"`)
		assert.True(t, old == 1, "%s: the old name of \"What else upstream does\" is there %d times", chapter.Path, old)
	}
	assert.True(t, strings.Contains(book.Chapters[0].HTML, `<a id="errors-speak-of-keys-statuses-speak-of-resources">`),
		"the old name of a heading is missing in chapter 01")
}

func TestTheDocumentsAreFewAndShort(t *testing.T) {
	book := require.Value(New(chapters.FS(), docs.FS()))(t)
	pages, words := 0, 0
	for _, doc := range book.Documents {
		name := path.Base(doc.Path) + ".md"
		if name == "CHANGES.md" || collected[name] != nil {
			continue
		}
		n := said(doc.HTML)
		t.Logf("%s: %d words", name, n)
		pages, words = pages+1, words+n
	}
	t.Logf("%d pages with %d words", pages, words)
	assert.True(t, pages <= docsPages, "%d pages, want at most %d", pages, docsPages)
	assert.True(t, words <= docsWords, "%d words, want at most %d", words, docsWords)
}

// said counts the words of prose and tables in a page, without code and drawings.
func said(page string) int {
	return len(strings.Fields(html.UnescapeString(tags.ReplaceAllString(quoted.ReplaceAllString(page, ""), ""))))
}

// columns is the maximum width of a line of an excerpt. Lines that report a moment or name upstream's counterpart may
// be longer, because they cannot be broken.
const columns = 96

func TestExcerptsFitTheirBox(t *testing.T) {
	tree := require.Value(source.Parse(chapters.FS()))(t)
	e := newEditor(chapters.FS(), tree)
	quoted := regexp.MustCompile(`(?m)^\[([\w.]+)\]\((\S+) "(code|whole)[^"]*"\)`)
	list := require.Value(chapters.List(chapters.FS()))(t)
	lines := 0
	for _, chapter := range list {
		for _, match := range quoted.FindAllStringSubmatch(read(t, chapter.Folder+"/README.md"), -1) {
			file := path.Join(chapter.Folder, match[2])
			decl := require.Value(tree.Holding(file).Find(match[1], path.Base(file)))(t)
			for i, line := range strings.Split(decl.Src, "\n") {
				lines++
				at := fmt.Sprintf("%s:%d", file, decl.From+i)
				width := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
				assert.False(t, width > columns && e.told[at] == "" && !strings.HasPrefix(line, "// Upstream: "),
					"%s has %d columns, want at most %d:\n%s", at, width, columns, line)
			}
		}
	}
	assert.True(t, lines >= 1000, "looked at %d lines only", lines)
}

// TestAFirstTryIsShort limits each first try to 25 lines, without those of comments and of the bubble.
func TestAFirstTryIsShort(t *testing.T) {
	tries, err := fs.Glob(chapters.FS(), "*/first_try_test.go")
	require.True(t, err == nil && len(tries) >= 13, "found %d files of first tries, %v", len(tries), err)
	example := regexp.MustCompile(`(?sm)^func (Example_\w+)\(\) \{\n(.*?)^\t+// (?:Unordered o|O)utput:`)
	passed := regexp.MustCompile(`^\t+//|^\tbubble\.Example|^\t}\)$`)
	for _, file := range tries {
		found := example.FindAllStringSubmatch(read(t, file), -1)
		assert.True(t, len(found) != 0, "%s has no example", file)
		for _, try := range found {
			lines := strings.Split(strings.TrimRight(try[2], "\n"), "\n")
			lines = slices.DeleteFunc(lines, passed.MatchString)
			assert.True(t, len(lines) <= 25, "%s: %s has %d lines, want at most 25", file, try[1], len(lines))
		}
	}
}

var (
	update   = flag.Bool("update", false, "write first tries and their outputs into the READMEs of the chapters")
	firstTry = regexp.MustCompile(`(?m)^\[(\w+)\]\((first_try_test\.go) "(code|output)"\)\n`)
)

// TestFirstTriesAreFreshOnAForge checks, or with -update writes, the parts of READMEs that only a forge needs: the code
// or the output of a first try below each link to it, and a link to the next chapter at the end of all but the last.
func TestFirstTriesAreFreshOnAForge(t *testing.T) {
	tree := require.Value(source.Parse(chapters.FS()))(t)
	tries, list := 0, require.Value(chapters.List(chapters.FS()))(t)
	for i, chapter := range list {
		text := read(t, chapter.Folder+"/README.md")
		want := made.ReplaceAllString(text, "")
		links := strings.Count(want, `](first_try_test.go "`)
		want = firstTry.ReplaceAllStringFunc(want, func(link string) string {
			links, tries = links-1, tries+1
			match := firstTry.FindStringSubmatch(link)
			decl := require.Value(tree.Holding(path.Join(chapter.Folder, match[2])).Find(match[1], match[2]))(t)
			code, prints := cutOutput(decl.Src)
			shown := "go\n" + code
			if prints != "" {
				shown += "\n}" // the brace that follows the output
			}
			if match[3] == "output" {
				shown = "text\n" + prints
			}
			return link + "\n<!-- made -->\n```" + shown + "\n```\n<!-- end -->\n"
		})
		if i+1 < len(list) {
			next := list[i+1].Folder + "/README.md"
			title, _, _ := strings.Cut(strings.TrimPrefix(read(t, next), "# "), "\n")
			want += fmt.Sprintf("\n<!-- made -->\nNext: [%s](../%s)\n<!-- end -->\n", title, next)
		}
		assert.True(t, links == 0, "%s: a link to a first try is not at the beginning of its line",
			chapter.Folder)
		assert.False(t, strings.Contains(want, "\n> **Answer**"), "%s: an answer is a quotation, which no forge folds",
			chapter.Folder)
		if *update {
			file := filepath.Join("..", "..", "..", "chapters", chapter.Folder, "README.md")
			require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
		}
		assert.True(t, *update || text == want, "%s: what is made in the README is stale: run make generate and "+
			"commit the result", chapter.Folder)
	}
	assert.True(t, tries >= 50, "found %d links to first tries only", tries)
}

func read(t *testing.T, name string) string {
	t.Helper()
	text := require.Value(fs.ReadFile(chapters.FS(), name))(t)
	return string(text)
}

const tries = `package ring_test

// Type has fields.
type Type struct {
	// A comes first.
	a int
	b int // second

	c, d int
}

func Example_wait() {
	fmt.Println("<one>")
	// Output: <one>
}

func Example_none() {}
`

func TestTriesAndPartsAreQuoted(t *testing.T) {
	fsys := course()
	fsys["04-ring/first_try_test.go"] = &fstest.MapFile{Data: []byte(tries)}
	tests := []struct {
		name, prose string
		want, not   []string
	}{
		{"in an answer", "<details><summary>Answer</summary>\n\nSo:\n\n" +
			`[Example_wait](first_try_test.go "output")` + "\n\n</details>",
			[]string{"<summary>Answer</summary>", "&lt;one&gt;"}, []string{"<summary>What it prints"}},
		{"fields", `[Type](first_try_test.go "code a d")`,
			[]string{`data-n="4">`, `data-n="5">`, `data-n="6">`, `data-n="⋮">`, `data-n="9">`, `data-n="10">`},
			[]string{`data-n="3"`, `data-n="7"`, `id="Type"`}},
		{"whole", `[Type](first_try_test.go "whole")`, []string{"<details class=\"answer\"><summary>All of " +
			"Type</summary><figure", `id="Type"`, `data-n="7"`}, nil},
		{"without output", `[Example_none](first_try_test.go "output")`, []string{"line: Example_none has no output"},
			nil},
		{"not a field", `[Type](first_try_test.go "code e")`, []string{"line: Type.e is not declared in 04-ring"}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fsys["04-ring/README.md"].Data = []byte("# 04 · R\n\nfine\n\n" + test.prose +
				"\n\n## The question\n\n## The walk\n")
			book := open(t, fsys)
			got := book.Chapters[0].HTML
			if err := book.Problems; err != nil {
				got = strings.Replace(err.Error(), "chapters/04-ring/README.md:5", "line", 1)
			}
			for _, part := range test.want {
				assert.True(t, strings.Contains(got, part), "%q is missing in\n%s", part, got)
			}
			for _, part := range test.not {
				assert.False(t, strings.Contains(got, part), "%q is there, in\n%s", part, got)
			}
		})
	}
}

// TestWordsAreMarkedOnceInASection: the book marks a word in prose, in code and in a link, but not in a heading, in a
// sample, or in a chapter in which it does not mean a part of the stage.
func TestWordsAreMarkedOnceInASection(t *testing.T) {
	readme :=
		"# 06 · Cacher\n\n## The ring\n\nThe ring feeds `input`, and the Ring and `input` again.\n[The rest of the " +
			"ring](../06-cacher/README.md#more) is incoming,\nnot `incoming` itself.\n" +
			"\n```\nring\n```\n\n## More\n\n**[ring](../06-cacher/README.md#more)**, in two rings\nof words. " +
			"An indexer; earrings.\n"
	b := require.Value(New(fstest.MapFS{"06-cacher/README.md": {Data: []byte(readme)},
		"06-cacher/doc.go": {Data: []byte("package cacher\n")}}, nil))(t)
	html := b.Chapters[0].HTML
	got := regexp.MustCompile(`<span data-part="[^>]*>.*?</span>`).FindAllString(html, -1)
	want := []string{
		`<span data-part="ring" data-kind="kept" tabindex="0">ring</span>`,
		`<span data-part="input" data-kind="queue" tabindex="0"><code>input</code></span>`,
		`<span data-part="incoming" data-kind="queue" tabindex="0"><code>incoming</code></span>`,
		`<span data-part="ring" data-kind="kept"><a href="/book/06-cacher#more">ring</a></span>`,
	}
	assert.EqualSlices(t, want, got, "got %q\nwant %q\nin %s", got, want, html)
	plain := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(html, "")
	assert.True(t, strings.Contains(plain, "The ring feeds input, and the Ring and input again.\n") &&
		strings.Contains(plain, "in two rings\nof words."), "the text has changed: %s", plain)
}

func TestLinesAboutUpstreamAreCollected(t *testing.T) {
	fsys := course()
	fsys["04-ring/more.go"] = &fstest.MapFile{Data: []byte("package ring\n\n// More is round.\n//\n" +
		"// Differs: no *lock* for [Ring.mu],\n// nor for a_b <c>.\ntype More struct{}\n")}
	tree := require.Value(source.Parse(fsys))(t)
	for name, want := range map[string]string{"MAP.md": `
## [04-ring](../chapters/04-ring/README.md)

| ours | upstream | in |
|---|---|---|
| [~Ring.add~](../chapters/04-ring/ring.go) | ~(*watchCache).updateCache~ | [k8s.io/apiserver/pkg/storage/cacher/` +
		`watch_cache.go](https://github.com/kubernetes/kubernetes/blob/v1.37.2/staging/src/k8s.io/apiserver/pkg/` +
		`storage/cacher/watch_cache.go) |
`, "DIFFERENCES.md": `
- [~More~](../chapters/04-ring/more.go): no \*lock\* for ~Ring.mu~, nor for a\_b &lt;c>.
`} {
		got := strings.ReplaceAll(string(require.Value(collected[name](tree, nil))(t)), "`", "~")
		assert.True(t, strings.HasSuffix(got, want), "%s: got %s\nwant at its end %s", name, got, want)
	}
}

func TestTheHandoutHasTheMapTheKeysAndTheQuestions(t *testing.T) {
	text := string(require.Value(handout(nil, docs.FS()))(t))
	for part, want := range map[string]int{
		"─► WatchServer ─┐": 1, "| **V** |": 1, "\n| 1a | ": 1, "? | |\n": 25, "\n---\n": 1,
	} {
		assert.Equal(t, want, strings.Count(text, part), part)
	}
}
