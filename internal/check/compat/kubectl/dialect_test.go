package kubectl

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// dialects are what kubectls of other ages are known to say differently, and what stands for it.
var dialects = []struct {
	pattern *regexp.Regexp
	word    string
}{
	{regexp.MustCompile(`( deleted) from \S+ namespace`), "$1"}, // since 1.34
	{regexp.MustCompile(`(?m)^ *Kube-Proxy Version:.*\n`), ""},  // until 1.32
	{regexp.MustCompile(`\n+(\nBinaryData\n)`), "$1"},           // an empty line more since 1.27
	// A connection that cannot be upgraded.
	{regexp.MustCompile(`(! error: error upgrading connection: )unable to upgrade connection: `), "$1"},
	{regexp.MustCompile(`! error: unable to upgrade connection(: the server could not find)`), "! Error from server " +
		"(NotFound)$1"},
	{regexp.MustCompile(`(ephemeral containers are disabled .*\))\.`), "$1"},
}

// dialect takes from an output what depends on the age of kubectl.
func dialect(text string) string {
	for _, d := range dialects {
		text = d.pattern.ReplaceAllString(text, d.word)
	}
	return text
}

// asOpenAPIv2 has kubectl explain as it did until 1.26, which then was the only way and needed no flag.
const asOpenAPIv2 = " --output=plaintext-openapiv2"

// knowsOpenAPIv3 asks a kubectl whether it has that flag.
func knowsOpenAPIv3(t *testing.T, binary string) bool {
	t.Helper()
	help, err := exec.Command(binary, "explain", "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(help), asOpenAPIv2[:len(" --output=")])
}

// spoken returns a command in the words of a kubectl that explains by OpenAPI v2 alone. ok is false if it has none: the
// sessions ask for every explanation in both ways.
func spoken(command string) (_ string, ok bool) {
	plain := strings.Replace(command, asOpenAPIv2, "", 1)
	return plain, plain != command || !strings.HasPrefix(command, "kubectl explain ")
}
