package expectedevents

import (
	"slices"
	"testing"

	"listwatch/internal/check/assert"
)

func blue(_, state string) bool { return state == "blue" }

// lived returns a history in which b enters and leaves each view in every possible way.
func lived() (h History) {
	for n, write := range [][2]string{
		{"b", "red"}, {"b", "blue"}, {"a", "blue"}, {"b", "blue"}, {"b", "red"}, {"b", ""}, {"b", "blue"}, {"b", ""},
	} {
		h.Write(uint64(n+1), write[0], write[1])
	}
	return h
}

func TestAnEventsTypeFollowsFromTheTwoMatches(t *testing.T) {
	h := lived()
	assert.EqualSlices(t, []Event{
		{"ADDED", "b", 2, "blue"}, {"ADDED", "a", 3, "blue"}, {"MODIFIED", "b", 4, "blue"}, {"DELETED", "b", 5, "blue"},
		{"ADDED", "b", 7, "blue"}, {"DELETED", "b", 8, "blue"},
	}, h.Events(View{Wants: blue}))
	assert.EqualSlices(t, []Event{
		{"MODIFIED", "b", 5, "red"}, {"DELETED", "b", 6, "red"}, {"ADDED", "b", 7, "blue"}, {"DELETED", "b", 8, "blue"},
	}, h.Events(View{From: 4}))
	assert.EqualSlices(t, []Event{{"ADDED", "a", 3, "blue"}, {"ADDED", "b", 4, "blue"}}, h.State(View{Wants: blue}, 4))
	assert.EqualSlices(t, []Event{{"ADDED", "a", 3, "blue"}}, h.State(View{Wants: blue}, 6))
	assert.Equal(t, "blue", h.Newest("a"))
	assert.Equal(t, "", h.Newest("b"))
}

func TestWhatIsNotAPrefixOfTheHistoryIsAFault(t *testing.T) {
	h, v := lived(), View{From: 2, Wants: blue}
	all := h.Events(v)
	assert.Equal(t, "", h.Check(v, all, false), "everything")
	for n := range all {
		assert.Equal(t, "", h.Check(v, all[:n], true), "a prefix, of a watcher that has ended")
		assert.True(t, h.Check(v, all[:n], false) != "", "a prefix of %d, of a watcher that is open, is no fault", n)
	}
	other := slices.Clone(all)
	other[1].Type = "ADDED"
	for what, saw := range map[string][]Event{
		"a gap": slices.Delete(slices.Clone(all), 1, 2), "twice": slices.Insert(slices.Clone(all), 1, all[0]),
		"another order": {all[1], all[0]}, "another type": other, "the past": h.Events(View{Wants: blue}),
	} {
		assert.True(t, h.Check(v, saw, true) != "", "%s is no fault", what)
	}
}
