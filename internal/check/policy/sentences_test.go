package policy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
)

// searched is the one file that looks into sentences: a viewer looks for words in them.
const searched = "viz/inspector/leaves.go"

// TestNothingReadsASentenceBack: a record is numbers and texts by name, its sentence is for people. No code compares
// one, takes one apart, or looks for something in one. What asks of a record asks for its fields ([probe.Query]).
func TestNothingReadsASentenceBack(t *testing.T) {
	t.Parallel()
	const root = "../../.."
	for _, dir := range []string{"internal", "chapters", "viz", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
			name := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
			switch {
			case err != nil || entry.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
				return err
			case strings.HasPrefix(name, "internal/observe/probe/") || name == searched: // where they are made
				return nil
			}
			for _, at := range readBack(t, path, nil) {
				t.Errorf("%s reads a record's sentence back: ask for its fields", at)
			}
			return nil
		})
		require.NoError(t, err)
	}
}

// TestASentenceThatIsReadBackIsFound, in each form.
func TestASentenceThatIsReadBackIsFound(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`return r.Sentence() == "etcd is compacted"`,
		`return strings.Contains(strings.ToLower(names.Sentence(r)), "gone")`,
		`text := r.Sentence(); return len(text) > 3 && strings.HasPrefix(text, "A knob")`,
		`switch r.Sentence() { case "": return true }; return false`,
		`said := waiting.Says; return pattern.MatchString(said)`,
		`_, rest, _ := strings.Cut(r.Sentence(), ": "); return rest == ""`,
		`var text = "x" + r.Sentence(); return text[0] == 'x'`,
	} {
		found := readBack(t, "a.go", "package a\nfunc f() bool { "+body+" }")
		assert.Equal(t, 1, len(found), "places in %s", body)
	}
	shown := "package a\nfunc f() { text := r.Sentence(); fmt.Println(text, strings.Map(harmless, r.Sentence())) }"
	assert.Equal(t, 0, len(readBack(t, "a.go", shown)), "places where it is only shown")
}

// readers are the calls that read a text, by name without a package: of strings, regexp, path, fmt and strconv.
var readers = []string{"Contains", "ContainsAny", "ContainsFunc", "HasPrefix", "HasSuffix", "Index", "IndexByte",
	"LastIndex", "Cut", "CutPrefix", "CutSuffix", "Split", "SplitN", "SplitSeq", "Fields", "FieldsSeq", "Lines",
	"TrimPrefix", "TrimSuffix", "EqualFold", "Count", "Compare", "Match", "MatchString", "FindString",
	"FindStringSubmatch", "FindAllString", "Sscan", "Sscanf", "Atoi", "ParseUint", "Like"}

// readBack returns where a file reads sentences back. In each function it follows them into variables.
func readBack(t *testing.T, path string, source any) (places []string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, decl := range file.Decls {
		held := map[string]bool{} // variables that hold a sentence
		var holds func(node ast.Node) bool
		holds = func(node ast.Node) (found bool) {
			ast.Inspect(node, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr: // what is made of it with a call that reads is reported there
					name := called(n)
					found = found || name == "Sentence"
					if slices.Contains(readers, name) || name == "len" {
						return false
					}
				case *ast.FuncLit:
					return false
				case *ast.SelectorExpr: // of probe.Waiting
					found = found || n.Sel.Name == "Says"
				case *ast.Ident:
					found = found || held[n.Name]
				}
				return !found
			})
			return found
		}
		report := func(at ast.Node, read ...ast.Expr) {
			if slices.ContainsFunc(read, func(e ast.Expr) bool { return e != nil && holds(e) }) {
				places = append(places, files.Position(at.Pos()).String())
			}
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for i, value := range n.Rhs {
					if name, ok := n.Lhs[min(i, len(n.Lhs)-1)].(*ast.Ident); ok && holds(value) {
						held[name.Name] = true
					}
				}
			case *ast.ValueSpec:
				for i, value := range n.Values {
					held[n.Names[i].Name] = holds(value)
				}
			case *ast.BinaryExpr:
				if empty(n.X) || empty(n.Y) {
					return true // whether there is one
				}
				if n.Op == token.EQL || n.Op == token.NEQ || n.Op == token.LSS || n.Op == token.GTR {
					report(n, n.X, n.Y)
				}
			case *ast.SwitchStmt:
				report(n, n.Tag)
			case *ast.CallExpr:
				if slices.Contains(readers, called(n)) {
					report(n, n.Args...)
				}
			}
			return true
		})
	}
	return places
}

func empty(e ast.Expr) bool {
	literal, ok := e.(*ast.BasicLit)
	return ok && literal.Value == `""`
}

// called returns the name of what is called, without what it is of.
func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}
