// Package loops draws the pictures of the stories' pages for `make site`: six seconds of a stage, as an SVG.
package loops

import (
	"fmt"
	"html"
	"slices"
	"strings"
)

// Play is a filmed stage: the looks that each frame shows and their places, in drawing order, and the looks' SVG.
type Play struct {
	Frames [][]struct {
		Look
		X, Y float64
	}
	Bodies      []string // SVG
	Style, Defs string
	View        [4]float64
}

// Look is one appearance of an element of the stage or of a token.
type Look struct {
	ID   string
	Body int // index into Bodies
}

// SVG returns a picture that repeats a play every six seconds, or shows its end to a viewer who prefers less motion.
func SVG(title string, play *Play) string {
	var order []Look
	places := map[Look][]string{} // by frame; "": not drawn
	for i, frame := range play.Frames {
		next := 0 // the place in order after the previous item
		for _, item := range frame {
			if places[item.Look] == nil {
				places[item.Look] = make([]string, len(play.Frames))
				order = slices.Insert(order, next, item.Look)
				next++
			} else {
				next = slices.Index(order, item.Look) + 1
			}
			places[item.Look][i] = fmt.Sprintf("transform:translate(%.1fpx,%.1fpx)", item.X, item.Y)
		}
	}
	m := movie{names: map[string]int{}}
	for _, look := range order {
		m.drawn.WriteString(m.moving(places[look], play.Bodies[look.Body]))
	}
	v := play.View
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="%.2f %.2f %.2f %.2f" class="all">`+
		`<title>%s</title><style>%s@media(prefers-reduced-motion:no-preference){%s}</style>%s%s</svg>`,
		v[0], v[1], v[2], v[3], html.EscapeString(title), play.Style, &m.rules, play.Defs, &m.drawn)
}

// movie collects the elements of an SVG, and the CSS rules that animate them.
type movie struct {
	names        map[string]int // the animations' numbers, by keyframes
	rules, drawn strings.Builder
}

// moving returns SVG that puts body at one place in each frame. Where the place is "", the body is hidden.
func (m *movie) moving(places []string, body string) string {
	var shown, way strings.Builder
	last, moved := "", false
	for i, place := range places {
		when := fmt.Sprintf("%.4g%%{", 100*float64(i)/float64(len(places)))
		if i == 0 || (place == "") != (places[i-1] == "") {
			now := map[bool]string{true: "hidden", false: "visible"}[place == ""]
			fmt.Fprintf(&shown, "%svisibility:%s}", when, now)
		}
		if place != "" {
			moved = moved || last != "" && place != last
			last = place
			way.WriteString(when + place + "}")
		}
	}
	switch {
	case moved:
		body = fmt.Sprintf(`<g class="%s" style="%s">%s</g>`, m.animation("linear", way.String()), last, body)
	case last != "transform:translate(0.0px,0.0px)":
		body = fmt.Sprintf(`<g style="%s">%s</g>`, last, body)
	}
	if slices.Contains(places, "") {
		end := map[bool]string{true: " gone"}[places[len(places)-1] == ""]
		body = fmt.Sprintf(`<g class="%s%s">%s</g>`, m.animation("step-end", shown.String()), end, body)
	}
	return body
}

// animation returns the class that animates an item by the keyframes in stops. For a new class, it adds the rules.
func (m *movie) animation(timing, stops string) string {
	k, known := m.names[stops]
	if !known {
		k = len(m.names)
		m.names[stops] = k
		fmt.Fprintf(&m.rules, "@keyframes k%d{%s}.k%[1]d{animation:k%[1]d 6s %s infinite}", k, stops, timing)
	}
	return fmt.Sprint("k", k)
}
