package kubectl

import "regexp"

// dialects are what kubectls of other ages are known to say differently, and what stands for it.
var dialects = []struct {
	pattern *regexp.Regexp
	word    string
}{
	{regexp.MustCompile(`( deleted) from \S+ namespace`), "$1"}, // since 1.34
	{regexp.MustCompile(`(?m)^ *Kube-Proxy Version:.*\n`), ""},  // until 1.32
}

// dialect takes from an output what depends on the age of kubectl.
func dialect(text string) string {
	for _, d := range dialects {
		text = d.pattern.ReplaceAllString(text, d.word)
	}
	return text
}
