package policy

import (
	"bufio"
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"listwatch/internal/source"
)

// The words: what the house rule on English (docs/STYLE.md) can count. A tic is a word or a turn that names no actor, or that a
// native reader stumbles over. None of them is wrong by itself, so each kind of text has a bound and not a ban.

// tics are what is counted. "There is none" is plain English; the other forms of "is none" are not.
var tics = regexp.MustCompile(`(?i)\b(nobody|somebody|everybody|anybody|whoever|whomever|anew|for ever|beside|be it|what there is|` +
	`those who|the ones? who|(there )?(?:is|are|was|were) none|let(?:s|ting)? go|` +
	`stand(?:s|ing)? (?:in|at|on|there|here|beside|below|above|first|last|behind|between)|` +
	`(?:stands|goes|comes|waits|moves|ends|stops|runs) never)\b`)

// A sentence is what is counted in: where it begins, and its words.
type sentence struct {
	where string
	text  string
}

func (s sentence) words() int {
	n := 0
	for _, word := range strings.Fields(s.text) {
		if strings.ContainsFunc(word, letter) {
			n++
		}
	}
	return n
}

// tics returns the tics of a sentence, in order. A statement that begins with "Who" has no antecedent for it.
func (s sentence) tics() []string {
	var found []string
	for _, match := range tics.FindAllString(s.text, -1) {
		if !strings.HasPrefix(strings.ToLower(match), "there ") {
			found = append(found, match)
		}
	}
	if strings.HasPrefix(s.text, "Who ") && !strings.HasSuffix(s.text, "?") {
		found = append(found, "Who")
	}
	return found
}

func letter(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r > 0x7f && r != '·' && r != '→'
}

var (
	codeSpan  = regexp.MustCompile("`[^`]*`")
	linkSpan  = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	tagSpan   = regexp.MustCompile(`<[^>]*>`)
	bullet    = regexp.MustCompile(`^(?:[-*+]|\d+\.)\s+`)
	endOfText = regexp.MustCompile(`[.?!…]["”*)]*\s+["“*(]*[A-Za-z0-9“]`)
)

// sentencesOf splits a paragraph that begins at a line. Code is one word; a link is its text.
func sentencesOf(name string, line int, paragraph string) []sentence {
	text := codeSpan.ReplaceAllString(paragraph, "CODE")
	text = linkSpan.ReplaceAllString(text, "$1")
	var all []sentence
	for _, part := range tagSpan.Split(text, -1) {
		part = strings.TrimSpace(strings.NewReplacer("**", "", "*", "").Replace(part))
		for part != "" {
			end := len(part)
			if cut := endOfText.FindStringIndex(part); cut != nil {
				end = cut[0] + strings.IndexAny(part[cut[0]:], " \t")
			}
			if s := (sentence{fmt.Sprintf("%s:%d", name, line), strings.TrimSpace(part[:end])}); s.words() > 0 {
				all = append(all, s)
			}
			part = strings.TrimSpace(part[end:])
		}
	}
	return all
}

// markdown returns the sentences of a document. Tables, code and headings are not sentences.
func markdown(name, text string) []sentence {
	var all []sentence
	var paragraph []string
	begun, fenced := 0, false
	flush := func() {
		all = append(all, sentencesOf(name, begun, strings.Join(paragraph, " "))...)
		paragraph = nil
	}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), ">"))
		fence := strings.HasPrefix(line, "```")
		if fence {
			fenced = !fenced
		}
		item := bullet.FindString(line)
		if fence || fenced || item != "" || line == "" || line[0] == '|' || line[0] == '#' {
			flush()
		}
		if fence || fenced || line == "" || line[0] == '|' || line[0] == '#' {
			continue
		}
		if len(paragraph) == 0 {
			begun = i + 1
		}
		paragraph = append(paragraph, line[len(item):])
	}
	flush()
	return all
}

// comments returns the sentences of a file's comments. What is indented is code; a line on upstream's symbol is an address.
func comments(tree *source.Tree, file *source.File) []sentence {
	var all []sentence
	for _, group := range file.AST.Comments {
		var text strings.Builder
		for _, comment := range group.List {
			line := strings.TrimPrefix(comment.Text, "//")
			switch {
			case strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "go:") || strings.Contains(line, "Upstream: "):
				line = ""
			case strings.HasPrefix(line, " Differs:"):
				line = "\n" + strings.TrimPrefix(line, " Differs:")
			case strings.HasPrefix(line, "   -"):
				line = "\n" + line
			}
			text.WriteString(strings.ReplaceAll(line, "|", " ") + "\n")
		}
		begun := tree.Line(group.Pos())
		for _, s := range markdown(file.Path, text.String()) {
			_, at, _ := strings.Cut(s.where, ":")
			offset, _ := strconv.Atoi(at)
			all = append(all, sentence{fmt.Sprintf("%s:%d", file.Path, begun+offset-1), s.text})
		}
	}
	return all
}

var (
	formatVerb  = regexp.MustCompile(`%[-+#0-9.\[\]]*[a-zA-Z]`)
	jsString    = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|`(?:[^`\\\\]|\\\\.)*`")
	jsBlank     = regexp.MustCompile(`\$\{[^}]*\}`)
	templString = regexp.MustCompile(`(?:title|aria-label|placeholder)="([^"]*)"|>([^<>{}]+)(?:<|$)`)
)

// phrase makes sentences of a text that the page shows, unless it is too short to be one.
func phrase(name string, line int, text string) []sentence {
	if len(strings.Fields(text)) < 3 {
		return nil
	}
	return sentencesOf(name, line, text)
}

// literals returns what the strings of a Go file say.
func literals(tree *source.Tree, file *source.File) []sentence {
	var all []sentence
	for node := range ast.Preorder(file.AST) {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			text, _ := strconv.Unquote(literal.Value)
			all = append(all, phrase(file.Path, tree.Line(literal.Pos()), formatVerb.ReplaceAllString(text, "X"))...)
		}
	}
	return all
}

// shown returns what a template or a script says.
func shown(name, text string) []sentence {
	var all []sentence
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		switch {
		case strings.HasPrefix(line, "//"):
		case path.Ext(name) == ".js":
			for _, literal := range jsString.FindAllString(line, -1) {
				all = append(all, phrase(name, n, jsBlank.ReplaceAllString(literal[1:len(literal)-1], "X"))...)
			}
		default:
			for _, match := range templString.FindAllStringSubmatch(line, -1) {
				all = append(all, phrase(name, n, match[1]+match[2])...)
			}
		}
	}
	return all
}

// prose returns the sentences of all documents that match.
func prose(repo *Repo, patterns ...string) []sentence {
	var all []sentence
	for _, pattern := range patterns {
		names, _ := fs.Glob(repo.FS, pattern) // the patterns are well formed
		for _, name := range names {
			text, err := fs.ReadFile(repo.FS, name)
			if err != nil || slices.Contains(collected, path.Base(name)) {
				continue
			}
			switch path.Ext(name) {
			case ".md":
				all = append(all, markdown(name, string(text))...)
			default:
				all = append(all, shown(name, string(text))...)
			}
		}
	}
	return all
}

// collected are the documents that are made of comments, and counted there.
var collected = []string{"MAP.md", "DIFFERENCES.md"}

// inGo returns what pick finds in the hand-written Go files below some folders.
func inGo(repo *Repo, pick func(*source.Tree, *source.File) []sentence, below ...string) []sentence {
	var all []sentence
	for _, pkg := range repo.Tree.Packages {
		for _, file := range pkg.Files {
			in := func(dir string) bool { return strings.HasPrefix(file.Path, dir) }
			if !file.Test && !file.Generated && slices.ContainsFunc(below, in) {
				all = append(all, pick(repo.Tree, file)...)
			}
		}
	}
	return all
}

// kinds are the kinds of text, each with the most tics in a thousand words that it may have.
var kinds = []struct {
	name  string
	bound float64
	texts func(*Repo) []sentence
}{
	{"chapters", 1.3, func(r *Repo) []sentence { return prose(r, "chapters/*/README.md") }},
	{"documents", 1.5, func(r *Repo) []sentence { return prose(r, "docs/*.md", "README.md") }},
	{"comments of chapters", 0.8, func(r *Repo) []sentence { return inGo(r, comments, "chapters/") }},
	{"comments of internal packages", 1.2, func(r *Repo) []sentence { return inGo(r, comments, "internal/", "cmd/", "viz/") }},
	{"page", 0.3, func(r *Repo) []sentence {
		said := inGo(r, literals, "viz/", "cmd/", "internal/probe/points.go", "internal/scenario/", "internal/sandbox/", "internal/hold/", "internal/remote/")
		return append(said, prose(r, "viz/*/*.templ", "viz/*/*.js")...)
	}},
}

func TestTextsNameTheirActors(t *testing.T) {
	repo, err := open()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			all := kind.texts(repo)
			f := count(all)
			t.Log(f)
			if f.perThousand() <= kind.bound {
				return
			}
			t.Errorf("%.1f tics in a thousand words, at most %.1f may be: say who does what", f.perThousand(), kind.bound)
			for _, s := range all {
				if found := s.tics(); len(found) > 0 {
					t.Errorf("%s: %q in: %s", s.where, found, s.text)
				}
			}
		})
	}
}

// longest and average bound the sentences of the chapters, in words.
const (
	longest = 30
	average = 17
)

func TestSentencesOfChaptersAreShort(t *testing.T) {
	repo, err := open()
	if err != nil {
		t.Fatal(err)
	}
	byFile := map[string][]sentence{}
	for _, s := range prose(repo, "chapters/*/README.md") {
		name, _, _ := strings.Cut(s.where, ":")
		byFile[name] = append(byFile[name], s)
		if n := s.words(); n > longest {
			t.Errorf("%s: %d words, at most %d may be: %s", s.where, n, longest, s.text)
		}
	}
	for name, all := range byFile {
		if f := count(all); f.average() > average {
			t.Errorf("%s: %.1f words a sentence, at most %d may be", name, f.average(), average)
		}
	}
	if len(byFile) < 15 {
		t.Errorf("found the prose of %d chapters", len(byFile))
	}
}

// figures are what is counted in some sentences.
type figures struct{ sentences, words, tics, longest int }

func count(all []sentence) (f figures) {
	for _, s := range all {
		n := s.words()
		f.sentences++
		f.words += n
		f.tics += len(s.tics())
		f.longest = max(f.longest, n)
	}
	return f
}

func (f figures) perThousand() float64 { return 1000 * float64(f.tics) / float64(cmp.Or(f.words, 1)) }
func (f figures) average() float64     { return float64(f.words) / float64(cmp.Or(f.sentences, 1)) }

func (f figures) String() string {
	return fmt.Sprintf("%d words, %.1f tics in a thousand, %.1f words a sentence, %d in the longest", f.words, f.perThousand(), f.average(), f.longest)
}

func TestTheCounterCounts(t *testing.T) {
	const document = "# Nobody counts a heading\n\nNobody waits. Who asks,\nasks again! Who asks? See [somebody](x.md#beside) and `let go`.\n\n" +
		"| nobody | whoever |\n|---|---|\n\n- There is none. A key that is none.\n\n```\nnobody\n```\n\n<details><summary>Why</summary> It stands at 3.5 and goes on for ever.</details>\n"
	want := []string{
		`d.md:3 [Nobody]`, `d.md:3 [Who]`, `d.md:3 []`, `d.md:3 [somebody]`, `d.md:9 []`, `d.md:9 [is none]`, `d.md:15 []`, `d.md:15 [stands at for ever]`,
	}
	var got []string
	for _, s := range markdown("d.md", document) {
		got = append(got, fmt.Sprint(s.where, " ", s.tics()))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if f := count(markdown("d.md", "One two three, `four five`: six.\nSeven.\n")); f != (figures{2, 6, 0, 5}) {
		t.Errorf("counted %v", f)
	}

	repo := seeded(t, map[string]string{"viz/x.go": "package viz\n\n// X holds what somebody sent.\n//\n// Upstream: k8s.io/a/b.go: Nobody\n//\n//\tnobody\nvar X = \"short\" + \"nobody can be %s here\" // set by whoever makes it\n"})
	page := `say(x, "everybody waits here"); // nobody`
	template := `<p title="Whoever it is, it waits">Somebody can be seen</p>`
	for name, test := range map[string]struct {
		all  []sentence
		want string
	}{
		"comments": {inGo(repo, comments, "viz/"), "viz/x.go:3 [somebody], viz/x.go:8 [whoever]"},
		"strings":  {inGo(repo, literals, "viz/"), "viz/x.go:8 [nobody]"},
		"script":   {shown("x.js", page), "x.js:1 [everybody]"},
		"template": {shown("x.templ", template), "x.templ:1 [Whoever], x.templ:1 [Somebody]"},
	} {
		var got []string
		for _, s := range test.all {
			got = append(got, fmt.Sprint(s.where, " ", s.tics()))
		}
		if strings.Join(got, ", ") != test.want {
			t.Errorf("%s: got %q, want %s", name, got, test.want)
		}
	}
}
