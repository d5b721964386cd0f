package rules

import (
	"testing"

	"listwatch/internal/check/assert"
)

func TestAViewIsAPrefixOfItsHistory(t *testing.T) {
	web, db := "web", "db"
	var h History[string]
	h.Write(2, "default/a", &web)
	h.Write(3, "default/a", &db)
	h.Write(4, "kube-system/b", &web)
	h.Write(5, "default/a", nil)
	all := View[string]{From: 1}
	onlyWeb := View[string]{From: 1, Matches: func(_ string, state string) bool { return state == "web" }}
	h.Text = func(state string) string { return state }
	a2, a3 := Seen{"ADDED", "default/a", 2, web}, Seen{"MODIFIED", "default/a", 3, db}
	b4, a5 := Seen{"ADDED", "kube-system/b", 4, web}, Seen{deleted, "default/a", 5, db}
	gone3, wrong4 := Seen{deleted, "default/a", 3, web}, Seen{"ADDED", "kube-system/b", 4, db}
	for name, c := range map[string]struct {
		view  View[string]
		seen  []Seen
		ended bool
		right bool
	}{
		"complete":        {all, []Seen{a2, a3, b4, a5}, false, true},
		"ended early":     {all, []Seen{a2, a3}, true, true},
		"open, and short": {all, []Seen{a2, a3}, false, false},
		"a gap":           {all, []Seen{a2, b4, a5}, true, false},
		"twice":           {all, []Seen{a2, a2, a3}, true, false},
		"another order":   {all, []Seen{a3, a2}, true, false},
		"too much":        {View[string]{From: 4}, []Seen{b4, a5}, true, false},
		"selected":        {onlyWeb, []Seen{a2, gone3, b4}, false, true},
		"wrong object":    {all, []Seen{a2, a3, wrong4}, true, false},
		"new, not old":    {onlyWeb, []Seen{a2, {deleted, "default/a", 3, db}}, true, false},
		"wrong type":      {onlyWeb, []Seen{a2, a3, b4}, true, false},
		"of the storage":  {onlyWeb, []Seen{a2, gone3, b4, a5}, false, false},
	} {
		fault := h.Check(c.view, c.seen, c.ended)
		assert.Equal(t, fault == "", c.right, "%s: got %q", name, fault)
	}
}

func TestTheStateAtAVersionIsWhatMatchesThen(t *testing.T) {
	web, db := "web", "db"
	var h History[string]
	h.Write(2, "default/b", &web)
	h.Write(3, "default/a", &db)
	h.Write(4, "default/b", &db)
	h.Write(5, "default/a", nil)
	onlyDB := View[string]{Matches: func(_ string, state string) bool { return state == "db" }}
	for rv, want := range []string{
		"", "", "ADDED default/b 2", "ADDED default/a 3, ADDED default/b 2", "ADDED default/a 3, ADDED default/b 4",
		"ADDED default/b 4",
	} {
		assert.Equal(t, lines(h.StateAt(View[string]{}, uint64(rv))), want, "everything at %d", rv)
	}
	assert.Equal(t, lines(h.StateAt(onlyDB, 3)), "ADDED default/a 3", "selected")
}
