package policy

import (
	"regexp"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
)

var (
	// unixOnly is what a Unix shell or its tools understand, and PowerShell does not. The last two it takes apart: it
	// drops double quotes in an argument, and cuts an argument that begins with - at its first dot.
	unixOnly = regexp.MustCompile(`\$[\w({]|&&|\|\||\|\s*(?:grep|head|tail|tr|sed|cut|wc|sort|uniq|awk|xargs|stdbuf|base64)\b|` +
		`\b(?:seq|pgrep|sleep|timeout|export)\s|\bfor \w+ in\b|<<|/dev/|2>|\\$|&$|^\w+=|^\(|\w\(\) \{|'[^']*"[^']*'|\s-\w[^\s'"]*\.`)

	// piped is a text that goes through a pipe. That way it arrives whole.
	piped = regexp.MustCompile(`^echo '[^']*' \| `)

	// onlyHere are commands that not every system has, each with what a page says about it that uses it.
	onlyHere = map[*regexp.Regexp]string{
		regexp.MustCompile(`^curl `): "In PowerShell, `curl` is `curl.exe`",
		regexp.MustCompile(`^make `): "Without `make`, type what it runs",
	}
)

// shellFaults says which commands are for a Unix shell alone.
func shellFaults(repo *Repo) []Fault {
	texts, faults := repo.texts("README.md", "docs/*.md", "chapters/*/README.md")
	for name, text := range texts {
		faults = append(faults, typedFaults(name, text)...)
	}
	return faults
}

// typedFaults looks at what a reader types on a page: what stands behind "$ " in a console, and how it goes on. A
// console that is for Linux says so, and is left out.
func typedFaults(name, text string) (faults []Fault) {
	console := false
	for i, line := range strings.Split(text, "\n") {
		if info, fence := strings.CutPrefix(line, "```"); fence {
			console = strings.HasPrefix(info, "console") && !strings.HasPrefix(info, "console linux")
		}
		command := strings.TrimPrefix(strings.TrimPrefix(line, "$ "), "> ")
		if !console || command == line {
			continue
		}
		if found := unixOnly.FindString(piped.ReplaceAllString(command, "")); found != "" {
			faults = append(faults, fault(name, i+1, "%q is for a Unix shell: write what PowerShell understands, too",
				found))
		}
		for uses, says := range onlyHere {
			if uses.MatchString(command) && !strings.Contains(text, says) {
				faults = append(faults, fault(name, i+1, "the page does not say %q", says))
			}
		}
	}
	return faults
}

func TestEveryReadersShellUnderstandsTheCommands(t *testing.T) {
	for command, want := range map[string]int{
		`kubectl get --raw "/api/v1/pods?watch=true&resourceVersion=0"`:       0,
		`go test ./chapters/06-cacher -run 'Slow|Sequentially' -v`:            0,
		`echo '{"do":"hold"}' | kubectl create --raw /viz/hold -f -`:          0,
		`go tool '-modfile=internal/check/tools/go.mod' dlv version`:          0,
		`kubectl -s http://127.0.0.1:8080 patch pod a -p '{spec: {}}' # this`: 0,
		`kubectl -s $S get pods`:                                   1,
		`kubectl get pods | grep a`:                                1,
		`for i in $(seq 200); do`:                                  1,
		`curl -sN http://127.0.0.1:8080/api`:                       1,
		`make debug-viz`:                                           1,
		`kubectl annotate pod a big=$(head -c 10 x)`:               1,
		`(cd internal/check/compat && go test ./server)`:           1,
		`S=http://127.0.0.1:8080`:                                  1,
		`kubectl get pods -w &`:                                    1,
		`kubectl patch pod a -p '{"spec":{}}'`:                     1,
		`go tool -modfile=internal/check/tools/go.mod dlv version`: 1,
		"kubectl get pods \\\n> -w":                                1,
		"kubectl get pods\n> -w | head":                            1,
	} {
		page := "```console\n$ " + command + "\nprints | grep\n```\n\n```console linux\n$ seq 2\n```\n"
		got := typedFaults("READS.md", page)
		assert.Equal(t, len(got), want, "%s: got %v, want %d", command, got, want)
	}
	for command, says := range map[string]string{"make debug-viz": "Without `make`, type what it runs.",
		"curl -s http://127.0.0.1:8080": "(In PowerShell, `curl` is `curl.exe`.)"} {
		got := typedFaults("README.md", says+"\n\n```console\n$ "+command+"\n```\n")
		assert.Equal(t, len(got), 0, "%s, and the page says so: got %v", command, got)
	}
}
