package policy

import (
	"path"
	"regexp"
	"strings"
)

// symbolLink is a link from a document to a symbol of a chapter: [Cacher.dispatchEvent](../chapters/06-cacher/dispatch.go).
var symbolLink = regexp.MustCompile(`\[([A-Za-z]\w*(?:\.[A-Za-z]\w*)?)\]\(([^)\s]+)/(\w+\.go)\)`)

// relink returns the text of a document in docs/ with every link to a symbol pointing at the file in which the symbol is
// declared now, within the folder that the link names. Symbols that the folder does not declare are faults.
func relink(repo *Repo, name, text string) (string, []Fault) {
	var faults []Fault
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = symbolLink.ReplaceAllStringFunc(line, func(link string) string {
			match := symbolLink.FindStringSubmatch(link)
			symbol, folder := match[1], match[2]
			if strings.HasSuffix(symbol, ".go") || !strings.Contains(folder, "chapters/") {
				return link // the name of a file, or a word of a sentence
			}
			pkg := repo.Tree.In(path.Join(path.Dir(name), folder))
			if pkg == nil {
				return link // checkDocs says that there is no such file
			}
			decl, err := pkg.Find(symbol, "")
			if err != nil {
				faults = append(faults, fault(name, i+1, "%v", err))
				return link
			}
			return "[" + symbol + "](" + folder + "/" + path.Base(decl.File.Path) + ")"
		})
	}
	return strings.Join(lines, "\n"), faults
}
