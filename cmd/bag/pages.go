package main

import (
	"bytes"
	"errors"
	htmltemplate "html/template"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
)

// printed is how the pages of a bag look. The handout is two sheets of A4: the line between its parts is the end of the first.
const printed = `
body { font: 15px/1.45 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #111; background: #fff }
pre, code { font: 13px/1.4 ui-monospace, monospace } pre { background: #f3f3f3; padding: .6rem; overflow-x: auto }
table { border-collapse: collapse } td, th { border: 1px solid #bbb; padding: .2rem .5rem; text-align: left; vertical-align: top }
hr { border: 0; break-after: page }
@media print { @page { size: A4; margin: 12mm } body { margin: 0; padding: 0; max-width: none; font-size: 11px; line-height: 1.3 } h1 { font-size: 16px; margin: 0 }
  pre, code { font-size: 9px } pre { background: none; padding: 0 } td, th { padding: .1rem .3rem } td:nth-child(3):last-child { width: 48% } td:nth-child(3):empty { height: 7mm } }
`

var page = htmltemplate.Must(htmltemplate.New("page").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{{.Title}}</title><meta name="viewport" content="width=device-width">
<style>{{.Style}}</style>
{{.Body}}
</html>
`))

// link is a link of Markdown.
var link = regexp.MustCompile(`\[([^\]]+)\]\(([^)\s]+)\)`)

// inBag lets links lead to what a bag has. Of a link into the sources, which are packed, the words stay.
func inBag(markdown string) string {
	return link.ReplaceAllStringFunc(markdown, func(found string) string {
		words, to := link.FindStringSubmatch(found)[1], link.FindStringSubmatch(found)[2]
		name, isPage := strings.CutSuffix(to, ".md")
		switch {
		case isPage && slices.Contains(pages, name):
			return "[" + words + "](" + strings.ToLower(name) + ".html)"
		case strings.HasSuffix(to, ".zip") || strings.HasSuffix(to, ".html") || strings.HasSuffix(to, "SHA256SUMS"):
			return found
		}
		return words
	})
}

// pages are the documents that are read beside the program.
var pages = []string{"WORKSHOP", "ANSWERS", "HANDOUT"}

// start is the first page of a bag.
var start = template.Must(template.New("start").Parse(`# List-watch in a bag

Version {{.Version}}. Everything here works without a network. For the teacher: [the plan](WORKSHOP.md) and [the answers](ANSWERS.md). For the attendees: [the handout](HANDOUT.md),
and [book, stories and stage](site/index.html), which need nothing but a browser.

## With Go 1.26 or newer

1. Unpack [{{.Sources}}]({{.Sources}}), and open a terminal in its folder *listwatch*.
2. Tell Go where the modules are. On a stick that is this folder's path, such as ~file:///media/stick/modules~ or ~file:///D:/modules~. If you have this page from the teacher's computer, it is the
   address above with *modules* behind it, such as ~http://192.168.1.7:9000/modules~.

~~~
go env -w GOPROXY=file:///media/stick/modules GOSUMDB=off GOTOOLCHAIN=local
go run ./cmd/viz -ready
go run ./cmd/viz
~~~

Afterwards ~go env -u GOPROXY GOSUMDB GOTOOLCHAIN~ makes Go as it was.

## Without Go

Unpack both archives for your system into one folder, and open a terminal there. Let it find the programs: ~export PATH="$PWD:$PATH"~, in PowerShell ~$env:PATH = "$PWD;$env:PATH"~.
Now ~viz -ready~ says what is missing. Where the plan says ~go run ./cmd/viz~, type ~viz~.

| system | the program | kubectl and the debugger |
|---|---|---|
{{range .Targets}}| {{.}} | [releases/listwatch-{{$.Version}}-{{.}}.zip](releases/listwatch-{{$.Version}}-{{.}}.zip) | [tools/tools-{{.}}.zip](tools/tools-{{.}}.zip) |
{{end}}
On a Mac, ~xattr -d com.apple.quarantine viz kubectl dlv~ lets programs start that did not come from a shop. [Checksums](releases/SHA256SUMS).

## For a room

The teacher hands this out to the room, and nothing else of the computer: ~./viz -serve-bag listwatch-bag.zip -listen 192.168.1.7:9000~, with the computer's own address.
`))

// addPages adds START.html and what is read on paper.
func (m *maker) addPages(bag *archive) error {
	var first bytes.Buffer
	if err := start.Execute(&first, map[string]any{"Version": m.version, "Targets": m.targets, "Sources": sourcesName}); err != nil {
		return err
	}
	if err := addPage(bag, startName, strings.ReplaceAll(strings.ReplaceAll(first.String(), "~~~", "```"), "~", "`")); err != nil {
		return err
	}
	for _, name := range pages {
		text, err := os.ReadFile(filepath.Join(m.root, "docs", name+".md"))
		if err != nil {
			return err
		}
		if err := addPage(bag, strings.ToLower(name)+".html", string(text)); err != nil {
			return err
		}
	}
	return nil
}

func addPage(bag *archive, name, markdown string) error {
	var body, out bytes.Buffer
	if err := goldmark.New(goldmark.WithExtensions(extension.Table)).Convert([]byte(inBag(markdown)), &body); err != nil {
		return err
	}
	title, _, _ := strings.Cut(strings.TrimPrefix(markdown, "# "), "\n")
	err := page.Execute(&out, map[string]any{"Title": title, "Style": htmltemplate.CSS(printed), "Body": htmltemplate.HTML(body.String())})
	return errors.Join(err, bag.addBytes(name, out.Bytes()))
}
