//go:build unix

package recipes

import (
	"regexp"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
)

var (
	// unixOnly matches syntax and tools that a Unix shell understands and PowerShell does not. From its second line on,
	// it matches arguments that PowerShell changes: PowerShell drops double quotes, and cuts an argument that begins
	// with - at its first dot.
	unixOnly = regexp.MustCompile(`(?m)\$[\w({]|&&|\|\||<<|/dev/|2>|\\$|&$|^\w+=|^\(|\w\(\) \{|` +
		`'[^']*"[^']*'|\s-\w[^\s'"]*\.|\|\s*(?:grep|head|tail|tr|sed|cut|wc|sort|uniq|awk|xargs|stdbuf|base64)\b|` +
		`\b(?:seq|pgrep|sleep|timeout|export)\s|\bfor \w+ in\b`)
	// piped matches a text that goes through a pipe, which PowerShell does not change.
	piped = regexp.MustCompile(`^echo '[^']*' \| `)
	// onlyHere are commands that not every system has, each with the hint that a page must have when it uses them.
	onlyHere = map[string]string{
		"curl ": "In PowerShell, `curl` is `curl.exe`", "make ": "Without `make`, type what it runs",
	}
)

// foreign returns the parts of a page's commands that not every reader's shell understands. It skips consoles marked
// for Linux.
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
	for command, want := range map[string]int{
		`kubectl get --raw "/api/v1/pods?watch=true&resourceVersion=0"`:       0,
		`go test ./chapters/06-cacher -run 'Slow|Sequentially' -v`:            0,
		`echo '{"do":"hold"}' | kubectl create --raw /viz/hold -f -`:          0,
		`go tool '-modfile=internal/check/tools/go.mod' dlv version`:          0,
		`kubectl -s http://127.0.0.1:8080 patch pod a -p '{spec: {}}' # this`: 0,
		`kubectl -s $S get pods`:                                   1,
		`kubectl get pods | grep a`:                                1,
		`curl -sN http://127.0.0.1:8080/api`:                       1,
		`kubectl annotate pod a big=$(head -c 10 x)`:               1,
		`(cd internal/check/compat && go test ./server)`:           1,
		`S=http://127.0.0.1:8080`:                                  1,
		`kubectl get pods -w &`:                                    1,
		`kubectl patch pod a -p '{"spec":{}}'`:                     1,
		`go tool -modfile=internal/check/tools/go.mod dlv version`: 1,
		"kubectl get pods\n> -w | head":                            1,
	} {
		p := parsePage(t, "x.md", "```console\n$ "+command+"\nprints | grep\n```\n\n```console linux\n$ seq 2\n```\n")
		assert.Equal(t, want, len(p.foreign()), "%s: got %q", command, p.foreign())
	}
	const said = "(In PowerShell, `curl` is `curl.exe`.)\n\n```console\n$ curl -s localhost\n```\n"
	assert.Equal(t, 0, len(parsePage(t, "x.md", said).foreign()), "the page says so")
}
