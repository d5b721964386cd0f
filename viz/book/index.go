package book

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/a-h/templ"

	"listwatch/internal/play/scenario"
	text "listwatch/internal/text/book"
)

// indexPath is where the pages' search (search.js) finds all places that it can lead to.
const indexPath = text.Root + "index.json"

// index lists the places of the book and the beats of the stories, each as [address, page, heading, words].
func index(b *text.Book, stories []scenario.Story) templ.Component {
	var rows [][4]string
	for _, p := range b.Places() {
		rows = append(rows, [4]string{p.At, p.Page, p.Heading, p.Words})
	}
	for _, story := range stories {
		for i, beat := range story.Beats {
			words := beat.Say
			if q := beat.Question; q != nil {
				words += " " + q.Ask + " " + strings.Join(q.Answers, " ")
			}
			heading := fmt.Sprint("Beat ", i+1)
			if i == 0 {
				heading = story.Symptom
			}
			at := fmt.Sprintf("/?story=%s&beat=%d", story.ID, i+1)
			rows = append(rows, [4]string{at, "Story: " + story.Title, heading, words})
		}
	}
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error { return json.NewEncoder(w).Encode(rows) })
}
