package stories

import (
	"fmt"
	"strings"

	"listwatch/internal/play/scenario"
)

// In milliseconds.
const (
	perWord   = 210    // that a reader needs
	atLeast   = 900    // between words and picture
	thinking  = 2500   // for a guess, besides the reading
	looking   = 1900   // at rest
	perRecord = 22     // that a record takes at reading pace, about
	shortest  = 1200   // that a beat plays
	longest   = 5500   //
	least     = 21_000 // that auto-play takes for a story
	most      = 84_000 //
)

// Pace is for how many milliseconds auto-play reads a beat, plays it, and rests at its end.
type Pace struct {
	Lead float64 `json:"lead"`
	Play float64 `json:"play"`
	Rest float64 `json:"rest"`
}

// PaceOf returns the pace of each beat of a story that is recorded there.
func PaceOf(s *scenario.Story, recorded []scenario.Range) []Pace {
	pace, sum := make([]Pace, len(s.Beats)), 0.0
	for i, beat := range s.Beats {
		lead, rest := atLeast+perWord*words(beat.Say), looking
		if q := beat.Question; q != nil {
			lead += thinking + perWord*words(append([]string{q.Ask}, q.Answers...)...)
			rest += perWord * words(q.Why)
		}
		play := min(longest, max(shortest, perRecord*int(recorded[i].To-recorded[i].From)))
		pace[i] = Pace{float64(lead), float64(play), float64(rest)}
		sum += float64(lead + play + rest)
	}
	scale := min(most, max(least, sum)) / sum
	for i := range pace {
		pace[i] = Pace{pace[i].Lead * scale, pace[i].Play * scale, pace[i].Rest * scale}
	}
	return pace
}

// minutes returns how long it takes to read and watch a story, in half minutes: "1½ min".
func minutes(s scenario.Story) string {
	n, pause := 0, 6 // seconds between the words of two beats
	for _, beat := range s.Beats {
		n += words(beat.Say)
		if q := beat.Question; q != nil {
			n += words(append([]string{q.Ask, q.Why}, q.Answers...)...)
		}
	}
	halves := max(1, (n/4+pause*len(s.Beats)+15)/30) // at four words a second
	return strings.TrimPrefix(fmt.Sprint(halves/2, []string{"", "½"}[halves%2]), "0") + " min"
}

// words counts the words of texts.
func words(texts ...string) int { return len(strings.Fields(strings.Join(texts, " "))) }
