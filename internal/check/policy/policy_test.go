package policy

import (
	"bytes"
	"cmp"
	"flag"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"text/template"

	"golang.org/x/tools/txtar"

	"listwatch/internal/check/assert"
	"listwatch/internal/check/require"
	"listwatch/internal/observe/probe"
)

func TestTheHouseRulesAreKept(t *testing.T) {
	points := make(map[string]*probe.Info)
	for _, point := range probe.Points() {
		points[point.String()] = point.Info()
	}
	for _, fault := range require.Value(faultsOf(os.DirFS("../../.."), points))(t) {
		t.Error(fault)
	}
}

// sound is a small repository that obeys all rules.
const sound = `
-- internal/observe/probe/probe.go --
package probe

type Probe struct{}

const Appended = 1
-- internal/observe/probe/points.go --
package probe

var table = []Info{
	{Name: "Appended", Args: "n"},
}
-- internal/server/etcdnode/node.go --
package etcdnode

import _ "listwatch/chapters/01-storage"
-- chapters/01-storage/store.go --
package storage

import "listwatch/internal/observe/probe"

// Store holds.
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

// faultsWith returns the faults of the sound repository after some of its files, in txtar form, and the declaration of
// its point are replaced.
func faultsWith(t *testing.T, change string, declared probe.Info) []string {
	t.Helper()
	files := fstest.MapFS{}
	for _, file := range txtar.Parse([]byte(sound + change)).Files {
		files[file.Name] = &fstest.MapFile{Data: file.Data}
	}
	declared.Name, declared.Args, declared.Lane = "Appended", "n", cmp.Or(declared.Lane, "store.loop")
	return require.Value(faultsOf(files, map[string]*probe.Info{"Appended": &declared}))(t)
}

// TestEachRuleFindsItsFault seeds one fault at a time.
func TestEachRuleFindsItsFault(t *testing.T) {
	const points, dir = "internal/observe/probe/points.go:4: ", "chapters/01-storage/"
	const seed, test, store = dir + "seed.go", dir + "x_test.go", dir + "store.go"
	imports := func(file, other string) string {
		return "-- " + file + " --\npackage storage\n\nimport _ \"listwatch/" + other + "\"\n"
	}
	starts := func(file string) string { return "-- " + file + " --\npackage storage\n\nfunc f() {\n\tgo f()\n}\n" }
	body := func(body string) string {
		return "-- " + store + " --\npackage storage\n\nimport \"listwatch/internal/observe/probe\"\n\n" +
			"func (s *Store) Get() {\n" + body + "}\n"
	}
	const report = "\ts.At(probe.Appended, key, rv, 1)\n"
	const lower = ": a chapter imports only chapters with lower numbers"
	const leaks = "starts a goroutine, and no test looks for those that are left"
	for _, each := range []struct{ change, want string }{
		{"", ""},
		{imports(seed, "chapters/06-cacher"), seed + ":3: imports chapters/06-cacher" + lower},
		{imports(seed, "chapters/01-storage"), seed + ":3: imports chapters/01-storage" + lower},
		{imports(test, "chapters/02-etcd3"), test + ":3: imports chapters/02-etcd3" + lower},
		{imports(seed, "internal/server/mvcc"), seed + ":3: imports internal/server/mvcc: of ours, a chapter imports " +
			"internal/kube and internal/observe"},
		{imports("internal/server/etcdnode/x.go", "viz"),
			"internal/server/etcdnode/x.go:3: imports viz: it is on a higher floor"},
		{imports("viz/stage/x.go", "viz"), "viz/stage/x.go:3: imports viz: it is on a higher floor"},
		{"-- internal/x/x.go --\npackage x\n",
			"internal/x:0: stands on no floor; there are " + strings.Join(floors, ", ")},
		{starts("viz/stage/x.go"), "viz/stage/x.go:4: " + leaks},
		{starts(test), test + ":4: a goroutine without a name: start it with routine.Group"},
		{"-- chapters/01-storage/store_test.go --\npackage storage\n", "chapters/01-storage/routine.go:4: " + leaks},
		{"-- " + seed + " --\npackage storage\n\n// X.\n//\n// Upstream: cacher.go: Cacher\ntype X int\n", seed +
			":5: upstream \"cacher.go: Cacher\": \"cacher.go\" is not the import path of a package or file"},
		{"-- docs/CONTRIBUTING.md --\n\n[x](../gone.md#y)\n", "docs/CONTRIBUTING.md:2: ../gone.md#y does not exist"},
		{"-- docs/x.md --\n`TestGone`\n", "docs/x.md:1: TestGone does not exist"},
		{"-- docs/DEBUGGING.md --\nbreak storage.(*Store).Gone\n",
			"docs/DEBUGGING.md:1: storage.(*Store).Gone does not exist"},
		{"-- docs/WHERE.md --\n[Gone](../chapters/01-storage/store.go), [Store](../chapters/01-storage/store.go)\n",
			"docs/WHERE.md:1: Gone is not declared in chapters/01-storage"},
		{"-- docs/x.md --\n[A.go](../viz/x.js), [A.gone](../viz/x.js)\n-- viz/x.js --\nexport class A {\n  go() {\n",
			"docs/x.md:1: A.gone is not declared in viz/x.js"},
		{body(""), points + "Appended is reported nowhere"},
		{body(report + report), store + ":6: Appended is reported from 2 lines, not from one\n" +
			store + ":7: Appended is reported from 2 lines, not from one"},
		{body(report + "\tx = probe.Appended\n"), store + ":7: Appended is mentioned, not reported"},
		{body("\ts.At(probe.Appended, key, rv)\n"),
			store + ":6: Appended is reported with 0 args, declared are 1: \"n\""},
		{body("\ts.n++; s.At(probe.Appended, key, rv, 1)\n"), store + ":6: Appended does not stand on its own line"},
		{imports(test, "internal/check/bubble") + "\nvar ctx = context.Background()\n",
			test + ":5: context.Background beside bubbles: take t.Context()"},
		{body("\ts.mu.Lock()\n" + report), store + ":7: Appended is not declared Locked, but Store.Get holds a lock " +
			"there: the world must not be held at it"},
	} {
		got := strings.Join(faultsWith(t, each.change, probe.Info{}), "\n")
		assert.Equal(t, each.want, got, "%s: got %q\nwant %q", each.change, got, each.want)
	}
	for want, declared := range map[string]probe.Info{
		store + ":11: Appended says {type} and is reported by At, which has none":              {Says: "{type} {key}"},
		store + `:11: Appended has the texts "why" and is reported by At`:                      {Texts: "why"},
		store + ":11: Appended is declared Locked, but Store.Get holds no lock there":          {Locked: true},
		points + "Appended names the lane store.run, but no goroutine of that name is started": {Lane: "store.run"},
	} {
		assert.EqualSlices(t, []string{want}, faultsWith(t, "", declared), "faults")
	}
}

var update = flag.Bool("update", false, "write the configurations of editors instead of comparing them")

// recipe is a file of docs/debugger, in the terms of an editor's configuration. Test is "" if Args are a program's.
type recipe struct {
	Name, Folder, Test string
	Args               []string
}

// TestConfigurationsOfEditorsAreFresh compares .vscode and .run with testdata/editors.txtar, filled with the recipes.
func TestConfigurationsOfEditorsAreFresh(t *testing.T) {
	const root = "../../.."
	var recipes []recipe
	for _, file := range require.Value(filepath.Glob(root + "/docs/debugger/*.dlv"))(t) {
		_, line, _ := strings.Cut(string(require.Value(os.ReadFile(file))(t)), "\n# debug ")
		line, _, _ = strings.Cut(line, "\n")
		words := strings.Fields(line)
		require.True(t, len(words) > 1, "%s needs a line: # debug PACKAGE ARGUMENTS", file)
		r := recipe{Name: strings.TrimSuffix(filepath.Base(file), ".dlv"), Folder: path.Clean(words[0]),
			Args: words[1:]}
		if r.Args[0] == "-test.run" {
			r.Test = r.Args[1]
			name, _, _ := strings.Cut(r.Test, "/")
			tests := require.Value(filepath.Glob(filepath.Join(root, r.Folder, "*_test.go")))(t)
			assert.True(t, slices.ContainsFunc(tests, func(test string) bool {
				return bytes.Contains(require.Value(os.ReadFile(test))(t), []byte("\nfunc "+name))
			}), "%s: no test of %s begins with %s", file, r.Folder, name)
		}
		recipes = append(recipes, r)
	}
	var filled bytes.Buffer
	form := require.Value(template.ParseFiles("testdata/editors.txtar"))(t)
	require.NoError(t, form.Execute(&filled, recipes))
	files := txtar.Parse(filled.Bytes()).Files
	if *update {
		require.NoError(t, os.RemoveAll(filepath.Join(root, ".run")))
		require.NoError(t, os.Mkdir(filepath.Join(root, ".run"), 0o755))
	}
	for _, file := range files {
		name := filepath.Join(root, file.Name)
		if *update {
			require.NoError(t, os.WriteFile(name, file.Data, 0o644))
		}
		text, _ := os.ReadFile(name)
		assert.True(t, bytes.Equal(text, file.Data), "%s is stale: run make generate and commit the result", file.Name)
	}
	found := require.Value(filepath.Glob(root + "/.run/*"))(t)
	assert.Equal(t, len(recipes)+2, len(found),
		"files of .run, of which attach and viz are no recipes: run make generate")
}
