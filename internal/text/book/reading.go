package book

import (
	"strings"
	"time"
)

// Reading is what a chapter asks of its reader. Declarations that are folded do not count.
type Reading struct {
	Words     int // of prose, tables and answers
	Comments  int // words in the comments of excerpts
	Code      int // lines of excerpts that hold code
	Exercises int // questions with a folded answer, and shell sessions
}

// Speeds of a reader who wants to understand.
const (
	proseAMinute   = 220 // words
	commentsPerMin = 180 // words
	codePerMin     = 12  // lines
	exerciseTakes  = 2 * time.Minute
)

// Time returns how long the chapter takes, with its exercises.
func (r Reading) Time() time.Duration {
	minutes := float64(r.Words)/proseAMinute + float64(r.Comments)/commentsPerMin + float64(r.Code)/codePerMin
	return time.Duration(minutes*float64(time.Minute)) + time.Duration(r.Exercises)*exerciseTakes
}

// addCode counts lines of Go.
func (r *Reading) addCode(src string) {
	for line := range strings.Lines(src) {
		code, comment, _ := strings.Cut(line, "//")
		r.Comments += len(strings.Fields(comment))
		if strings.TrimSpace(code) != "" {
			r.Code++
		}
	}
}
