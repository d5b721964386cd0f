package apiserver

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"

	registry "listwatch/chapters/07-registry"
)

var update = flag.Bool("update", false, "write the table of docs/KINDS.md")

// TestKindsAreDocumentedFresh compares the table of docs/KINDS.md with what discovery says.
func TestKindsAreDocumentedFresh(t *testing.T) {
	a := newAPI(t)
	idle := map[string]string{}
	for _, r := range registry.Resources() {
		idle[r.GroupResource().String()] = r.Idle
	}
	var table strings.Builder
	table.WriteString("| kind | resource | group | verbs | subresources | of no effect, because |\n" +
		"|---|---|---|---|---|---|\n")
	usual := []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	for _, path := range []string{"/api", "/apis"} {
		list := into[apidiscoveryv2.APIGroupDiscoveryList](t, a.do("GET", path, "", "Accept", aggregatedAccept).Body)
		for _, group := range list.Items {
			for _, r := range group.Versions[0].Resources {
				verbs := strings.Join(r.Verbs, ", ")
				if slices.Equal(r.Verbs, usual) {
					verbs = "all"
				}
				name := strings.Join(append([]string{r.Resource}, r.ShortNames...), ", ")
				if r.Scope == apidiscoveryv2.ScopeCluster {
					name += " (no namespace)"
				}
				var parts []string
				for _, sub := range r.Subresources {
					parts = append(parts, sub.Subresource)
				}
				gr := strings.TrimSuffix(r.Resource+"."+group.Name, ".")
				fmt.Fprintf(&table, "| %s | %s | %s | %s | %s | %s |\n", r.ResponseKind.Kind, name, group.Name, verbs,
					strings.Join(parts, ", "), idle[gr])
			}
		}
	}
	const file, begin, end = "../../../docs/KINDS.md", "<!-- made from discovery -->\n", "<!-- end -->\n"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), begin)
	old, after, closed := strings.Cut(rest, end)
	switch {
	case !ok || !closed:
		t.Fatalf("%s has no %q and %q", file, begin, end)
	case *update:
		if err := os.WriteFile(file, []byte(before+begin+table.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	case old != table.String():
		t.Errorf("%s is stale: run make generate and commit the result; it should say\n%s", file, table.String())
	}
}
