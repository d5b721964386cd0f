package policy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

// root is the repository, seen from this package.
const root = "../../.."

func read(t *testing.T, elements ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.Join(elements...)))
	require.NoError(t, err)
	return string(text)
}

// open parses the repository once for all tests.
var open = sync.OnceValues(func() (*Repo, error) {
	return Open(os.DirFS(root))
})

func TestTheHouseRulesAreKept(t *testing.T) {
	repo, err := open()
	require.NoError(t, err)
	for _, rule := range rules {
		t.Run(rule.Name, func(t *testing.T) {
			for _, fault := range rule.Check(repo) {
				t.Error(fault)
			}
		})
	}
}

// sound is a small repository that keeps all rules that look at files one by one.
const sound = `
-- internal/observe/probe/probe.go --
package probe

type Probe struct{}

const Appended = 1
-- internal/server/etcdnode/node.go --
package etcdnode

import _ "listwatch/chapters/01-storage"
-- chapters/01-storage/README.md --
# 01 · Storage

Words.
-- chapters/01-storage/store.go --
package storage

import "listwatch/internal/observe/probe"

// Store holds. See [Store.Get] and [probe.Probe].
//
// Upstream: k8s.io/apiserver/pkg/storage/interfaces.go: Interface
type Store struct{ *probe.Probe }

func (s *Store) Get() {
	s.At(probe.Appended, key, rv, 1)
}
-- chapters/01-storage/store_test.go --
package storage

import "go.uber.org/goleak"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
-- chapters/01-storage/routine.go --
package storage

func (s *Store) run() {
	s.group.Go(ctx, "store.loop", s.loop)
}
-- README.md --
See [the store](chapters/01-storage/store.go) and [upstream](https://example.com/x).
-- docs/DEBUGGING.md --
break storage.(*Store).Get, not sync.(*Mutex).Lock, and [back](../README.md#top).
-- cmd/viz/main.go --
package main

import _ "listwatch/viz"
`

// seeded returns the sound repository with some files replaced, in the form of sound.
func seeded(t *testing.T, change string) *Repo {
	t.Helper()
	files := fstest.MapFS{}
	for _, file := range txtar.Parse([]byte(sound + change)).Files {
		files[file.Name] = &fstest.MapFile{Data: file.Data}
	}
	repo, err := Open(files)
	require.NoError(t, err)
	return repo
}

func TestEachRuleFindsItsFault(t *testing.T) {
	const seed = "chapters/01-storage/seed.go"
	imports := func(file, other string) string {
		return "-- " + file + " --\npackage x\n\nimport _ \"listwatch/" + other + "\"\n"
	}
	upstream := func(line string) string {
		return "-- " + seed + " --\npackage storage\n\n// X.\n//\n// Upstream: " + line + "\ntype X int\n"
	}
	starts := func(file string) string { return "-- " + file + " --\npackage x\n\nfunc f() {\n\tgo f()\n}\n" }
	const lower = ": a chapter imports only chapters with lower numbers"
	tests := []struct{ name, rule, change, want string }{ // want: the one fault
		{"higher chapter", "no import leads up", imports(seed, "chapters/06-cacher"),
			seed + ":3: imports chapters/06-cacher" + lower},
		{"own chapter", "no import leads up", imports(seed, "chapters/01-storage"),
			seed + ":3: imports chapters/01-storage" + lower},
		{"higher in a test", "no import leads up", imports("chapters/01-storage/x_test.go", "chapters/02-etcd3"),
			"chapters/01-storage/x_test.go:3: imports chapters/02-etcd3" + lower},
		{"page in a chapter", "no import leads up", imports(seed, "viz"),
			seed + ":3: imports viz: it is on a higher floor"},
		{"chapter below", "no import leads up", imports("internal/observe/probe/x.go", "chapters/01-storage"),
			"internal/observe/probe/x.go:3: imports chapters/01-storage: it is on a higher floor"},
		{"no floor", "no import leads up", "-- internal/util/x.go --\npackage util\n",
			"internal/util: stands on no floor; there are " + strings.Join(floors, ", ")},
		{"no path", "upstream lines have the agreed form", upstream("cacher.go: Cacher"),
			seed + ":5: upstream \"cacher.go: Cacher\": \"cacher.go\" is not the import path of a package or file"},
		{"excerpt", "excerpts and links in prose resolve",
			"-- chapters/01-storage/README.md --\n# 01 · Storage\n\n[Gone](store.go \"code\")\n",
			"chapters/01-storage/README.md:3: Gone is not declared in 01-storage"},
		{"dead link", "documents point at what exists", "-- docs/STYLE.md --\n\n[x](../gone.md#y)\n",
			"docs/STYLE.md:2: ../gone.md#y does not exist"},
		{"dead breakpoint", "documents point at what exists", "-- docs/DEBUGGING.md --\nbreak storage.(*Store).Gone\n",
			"docs/DEBUGGING.md:1: storage.(*Store).Gone does not exist"},
		{"dead symbol", "documents point at what exists",
			"-- docs/WHERE.md --\n[Gone](../chapters/01-storage/store.go), [Store](../chapters/01-storage/store.go)\n",
			"docs/WHERE.md:1: Gone is not declared in chapters/01-storage"},
		{"shell", "every reader's shell understands the commands", "-- docs/READS.md --\n```console\n$ seq 2\n```\n",
			"docs/READS.md:2: \"seq \" is for a Unix shell: write what PowerShell understands, too"},
		{"go statement", "who starts goroutines looks for leaks", starts("viz/x.go"),
			"viz/x.go:4: starts a goroutine, and no test of the package calls goleak.VerifyTestMain"},
		{"group", "who starts goroutines looks for leaks", "-- chapters/01-storage/store_test.go --\npackage storage\n",
			"chapters/01-storage/routine.go:4: starts a goroutine, and no test of the package calls " +
				"goleak.VerifyTestMain"},
		{"nameless", "goroutines of chapters have names", starts("chapters/01-storage/x_test.go"),
			"chapters/01-storage/x_test.go:4: a goroutine without a name: start it with routine.Group"},
	}
	found := map[string]bool{"a moment is one line": true} // see TestAMomentThatIsNotOneLineIsFound
	for _, test := range tests {
		t.Run(test.rule+"/"+test.name, func(t *testing.T) {
			rule := ruleNamed(t, test.rule)
			assert.Equal(t, len(rule.Check(seeded(t, ""))), 0, "faults of the sound repository")
			faults := rule.Check(seeded(t, test.change))
			assert.True(t, len(faults) == 1 && faults[0].String() == test.want, "got %v\nwant %s", faults, test.want)
			found[test.rule] = true
		})
	}
	for _, rule := range rules {
		assert.True(t, found[rule.Name], "no seeded fault for %q", rule.Name)
	}
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
		`curl -sN http://127.0.0.1:8080/api`:                       1,
		`kubectl annotate pod a big=$(head -c 10 x)`:               1,
		`(cd internal/check/compat && go test ./server)`:           1,
		`S=http://127.0.0.1:8080`:                                  1,
		`kubectl get pods -w &`:                                    1,
		`kubectl patch pod a -p '{"spec":{}}'`:                     1,
		`go tool -modfile=internal/check/tools/go.mod dlv version`: 1,
		"kubectl get pods\n> -w | head":                            1,
	} {
		page := "-- docs/READS.md --\n```console\n$ " + command + "\nprints | grep\n```\n\n```console linux\n$ seq 2\n```\n"
		got := checkShells(seeded(t, page))
		assert.Equal(t, len(got), want, "%s: got %v", command, got)
	}
	const said = "-- docs/READS.md --\n(In PowerShell, `curl` is `curl.exe`.)\n\n```console\n$ curl -s localhost\n```\n"
	got := checkShells(seeded(t, said))
	assert.Equal(t, len(got), 0, "the page says so: got %v", got)
}

func ruleNamed(t *testing.T, name string) Rule {
	t.Helper()
	i := slices.IndexFunc(rules, func(rule Rule) bool { return rule.Name == name })
	require.True(t, i >= 0, "there is no rule %q", name)
	return rules[i]
}

func TestAMomentThatIsNotOneLineIsFound(t *testing.T) {
	const file = "chapters/01-storage/store.go"
	info := func(change func(*probe.Info)) map[string]*probe.Info {
		appended := &probe.Info{Name: "Appended", Args: "n", Lane: "store.loop", Says: "{key} has {n}."}
		change(appended)
		return map[string]*probe.Info{"Appended": appended}
	}
	same := func(*probe.Info) {}
	body := func(body string) string {
		return "-- " + file + " --\npackage storage\n\nimport \"listwatch/internal/observe/probe\"\n\n" +
			"func (s *Store) add() {\n" + body + "}\n"
	}
	report := "\ts.At(probe.Appended, key, rv, 1)\n"
	tests := []struct {
		name   string
		infos  map[string]*probe.Info
		change string
		want   []string
	}{
		{"sound", info(same), "", nil},
		{"nowhere", info(same), body(""), []string{"internal/observe/probe/points.go: Appended is reported nowhere"}},
		{"twice", info(same), body(report + report),
			[]string{file + ":6: Appended is reported from 2 lines, not from one", file + ":7: Appended is reported " +
				"from 2 lines, not from one"}},
		{"mentioned", info(same), body(report + "\tx = probe.Appended\n"),
			[]string{file + ":7: Appended is mentioned, not reported: a point is a source line"}},
		{"too few args", info(same), body("\ts.At(probe.Appended, key, rv)\n"),
			[]string{file + ":6: Appended is reported with 0 args, declared are 1: \"n\""}},
		{"shared line", info(same), body("\ts.n++; s.At(probe.Appended, key, rv, 1)\n"),
			[]string{file + ":6: Appended does not stand on its own line"}},
		{"no type", info(func(i *probe.Info) { i.Says = "{type} {key}" }), "", []string{file + ":11: Appended says " +
			"{type} and is reported by At, which has none"}},
		{"no text", info(func(i *probe.Info) { i.Says = "{text}" }), "", []string{file + ":11: Appended says {text} " +
			"and is reported by At, which has none"}},
		{"not locked", info(func(i *probe.Info) { i.Locked = true }), "", []string{file + ":11: Appended is " +
			"declared Locked, but Store.Get holds no lock there"}},
		{"locked", info(same), body("\ts.mu.Lock()\n" + report), []string{file + ":7: Appended is not declared " +
			"Locked, but Store.add holds a lock there: the world must not be held at it"}},
		{"unknown lane", info(func(i *probe.Info) { i.Lane = "store.run" }), "",
			[]string{"internal/observe/probe/points.go: Appended names the lane store.run, but no goroutine of that " +
				"name is started"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, fault := range momentFaults(seeded(t, test.change), test.infos) {
				got = append(got, fault.String())
			}
			assert.Equal(t, strings.Join(got, "\n"), strings.Join(test.want, "\n"), "got %q\nwant %q", got, test.want)
		})
	}
}
