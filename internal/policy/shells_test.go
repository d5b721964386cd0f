package policy

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// unixOnly is what a Unix shell or its tools understand, and PowerShell does not.
var unixOnly = regexp.MustCompile(`\$\(|\$[A-Z]\b|&&|\|\s*(?:grep|head|tail|tr|sed|cut|wc)\b|\b(?:seq|pgrep|base64|sleep)\s|\bfor \w+ in\b|<<|\\$|&$|^[A-Z]=|\w\(\) \{|\bcurl\b`)

// inAnyShell are the pages whose commands a reader types in PowerShell as they stand. The chapters' longer experiments want a Unix shell.
var inAnyShell = []string{"README.md", "docs/WORKSHOP.md", "docs/ANSWERS.md", "docs/LABS.md"}

// typedLines returns what a reader types on a page, with the numbers of the lines: what stands behind "$ " in a console.
func typedLines(text string) map[int]string {
	typed := map[int]string{}
	console := false
	for i, line := range strings.Split(text, "\n") {
		if info, fence := strings.CutPrefix(line, "```"); fence {
			console = strings.HasPrefix(info, "console")
			continue
		}
		if command, found := strings.CutPrefix(line, "$ "); found && console {
			typed[i+1] = command
		}
	}
	return typed
}

// shellFaults says which commands of these pages are for a Unix shell alone.
func shellFaults(repo *Repo) (faults []Fault) {
	for _, name := range inAnyShell {
		text, err := fs.ReadFile(repo.FS, name)
		if err != nil {
			return append(faults, fault(name, 0, "%v", err))
		}
		for line, command := range typedLines(string(text)) {
			if found := unixOnly.FindString(command); found != "" {
				faults = append(faults, fault(name, line, "%q is for a Unix shell: write what PowerShell understands, too", found))
			}
		}
	}
	return faults
}

func TestEveryReadersShellUnderstandsTheCommands(t *testing.T) {
	repo, err := open()
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range shellFaults(repo) {
		t.Error(each)
	}
	for command, want := range map[string]int{
		`kubectl get --raw "/api/v1/pods?watch=true&resourceVersion=0"`: 0,
		`go test ./chapters/06-cacher -run 'Slow|Sequentially' -v`:      0,
		`echo '{"do":"hold"}' | kubectl create --raw /viz/hold -f -`:    0,
		`kubectl -s $S get pods`:                     1,
		`kubectl get pods | grep a`:                  1,
		`for i in $(seq 200); do`:                    1,
		`curl -sN http://127.0.0.1:8080/api`:         1,
		`kubectl annotate pod a big=$(head -c 10 x)`: 1,
		`(cd internal/compat && go test ./server)`:   1,
		`S=http://127.0.0.1:8080`:                    1,
		`kubectl get pods -w &`:                      1,
	} {
		pages := map[string]string{}
		for _, name := range inAnyShell {
			pages[name] = "```console\n$ " + command + "\nprints | grep\n```\n"
		}
		if got := shellFaults(seeded(t, pages)); len(got) != want*len(pages) {
			t.Errorf("%s: got %v, want %d on each page", command, got, want)
		}
	}
}
