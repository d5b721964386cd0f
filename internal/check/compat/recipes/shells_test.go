//go:build unix

package recipes

import (
	"regexp"
	"strings"
	"testing"
)

var (
	// unixOnly matches syntax and tools that a Unix shell understands and PowerShell does not. The first two
	// alternatives of its second line match arguments that PowerShell changes: it drops double quotes inside single
	// quotes, and cuts an argument that begins with - at its first dot.
	unixOnly = regexp.MustCompile(`(?m)\$[\w({]|&&|\|\||<<|/dev/|2>|\\$|&$|^\w+=|^\(|\w\(\) \{|` +
		`'[^']*"[^']*'|\s-\w[^\s'"]*\.|\|\s*(?:grep|head|tail|tr|sed|cut|wc|sort|uniq|awk|xargs|stdbuf|base64)\b|` +
		`\b(?:seq|pgrep|sleep|timeout|export)\s|\bfor \w+ in\b`)
	// piped matches an echo of a quoted text into a pipe. PowerShell does not change such a text.
	piped = regexp.MustCompile(`^echo '[^']*' \| `)
	// onlyHere lists commands that some systems lack or name differently, and the hint that a page with one must have.
	onlyHere = map[string]string{
		"curl ": "In PowerShell, type `curl.exe`", "make ": "Without `make`, type what it runs",
	}
)

// foreign returns the parts of a page's commands that some shells cannot run. It skips Linux blocks and delve's prompt.
func (p *page) foreign() (found []string) {
	page := strings.Join(p.lines, "\n")
	for _, b := range p.blocks {
		for _, s := range b.steps {
			if s.typed || len(b.words) > 0 && b.words[0] == "linux" {
				continue
			}
			if what := unixOnly.FindString(piped.ReplaceAllString(s.command, "")); what != "" {
				found = append(found, what)
			}
			for uses, says := range onlyHere {
				if strings.HasPrefix(s.command, uses) && !strings.Contains(page, says) {
					found = append(found, uses)
				}
			}
		}
	}
	return found
}

func TestEveryReadersShellUnderstandsTheCommands(t *testing.T) {
	for _, p := range pages(t) {
		for _, what := range p.foreign() {
			t.Errorf("%s: %q is for a Unix shell: write what PowerShell understands, too", p.file, what)
		}
	}
}
