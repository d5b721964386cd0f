package policy

import (
	"strings"
	"testing"
)

func TestNoPageContradictsAnother(t *testing.T) {
	repo, err := open()
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range checkClaims(repo, claims) {
		t.Error(each)
	}
}

func TestABrokenClaimIsFound(t *testing.T) {
	repo := seeded(t, map[string]string{"docs/SIGNALS.md": "# Signals\n\n## On the client\n", "docs/STYLE.md": "A store holds water.\n"})
	sound := claim{says: "stores hold", home: "docs/SIGNALS.md#on-the-client", symbols: []string{"01-storage Store"}, words: map[string]string{"docs/STYLE.md": `holds\W+water`}, never: "never said"}
	if faults := checkClaims(repo, []claim{sound}); len(faults) > 0 {
		t.Fatalf("a sound claim: %v", faults)
	}
	for name, test := range map[string]struct {
		change func(c *claim)
		want   string
	}{
		"no home":     {func(c *claim) { c.home = "docs/SIGNALS.md#gone" }, "the home of"},
		"no symbol":   {func(c *claim) { c.symbols = []string{"01-storage Gone"} }, "is not declared"},
		"no link":     {func(c *claim) { c.others = []string{"docs/STYLE.md"} }, "does not link"},
		"other words": {func(c *claim) { c.words = map[string]string{"docs/STYLE.md": `holds\W+nothing`} }, "does not say"},
		"the reverse": {func(c *claim) { c.never = "holds water" }, "docs/STYLE.md:1: says the opposite"},
	} {
		t.Run(name, func(t *testing.T) {
			broken := sound
			test.change(&broken)
			faults := checkClaims(repo, []claim{broken})
			if len(faults) != 1 || !strings.Contains(faults[0].String(), test.want) {
				t.Errorf("got %v, want one fault: %s", faults, test.want)
			}
		})
	}
}
