package inspector

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"listwatch/internal/observe/probe"
	"listwatch/internal/play/sandbox"
	"listwatch/viz/stories"
)

// knob is something that can be done to a part: by a button of the page, or by any client with the request.
type knob struct {
	Title   string
	Press   string          // selector of the page's button that does it; "": Turn says it
	Turn    sandbox.Knob    // with {resource}, {subject} and {agent} where the part's belong
	Request string          // the same as a command; "": that of Turn
	At      []probe.Station // where it is offered
}

// knobs returns what can be done to the part.
func (p *part) knobs() (knobs []knob) {
	for _, each := range places().Knobs {
		if !slices.Contains(each.At, p.Station) {
			continue
		}
		if filled, ok := p.fill(each); ok {
			knobs = append(knobs, filled)
		}
	}
	for _, mode := range stories.Modes { // the switches whose difference is seen here
		if slices.Contains(mode.Seen, p.Station) {
			for _, value := range []string{mode.Before, mode.Today} {
				turn := sandbox.Knob{Name: "switch", Target: mode.Name, Value: value}
				knobs = append(knobs, knob{Title: "Start again with -" + mode.Name + "=" + value, Turn: turn,
					Request: requestOf(turn)})
			}
		}
	}
	return knobs
}

// fill puts the part's names into a knob; ok is false if the part has no name of that kind.
func (p *part) fill(k knob) (filled knob, ok bool) {
	for name, value := range map[string]string{"{resource}": p.Resource, "{subject}": p.Subject, "{agent}": p.agent()} {
		if value == "" && strings.Contains(k.Turn.Target, name) {
			return k, false
		}
		k.Title = strings.ReplaceAll(k.Title, name, value)
		k.Turn.Target = strings.ReplaceAll(k.Turn.Target, name, value)
	}
	if k.Press == "" {
		k.Request = requestOf(k.Turn)
	}
	return k, true
}

// agent returns what the client calls itself on the wire whose connection the part is about: the informer, or the
// client that a watcher serves; "" if that is not known.
func (p *part) agent() string {
	if p.Station == probe.Reflector {
		return "listwatch-informer"
	}
	if subject := p.picture.Subjects[p.Subject]; subject != nil {
		agent, _, _ := strings.Cut(subject.Texts[probe.WireOpened.String()], " ")
		return agent
	}
	return ""
}

// requestOf returns the command that turns a knob.
func requestOf(turn sandbox.Knob) string {
	body, err := json.Marshal(turn)
	if err != nil {
		panic(fmt.Sprintf("inspector: three strings are not JSON: %v", err))
	}
	return fmt.Sprintf("curl -X POST -H 'Content-Type: application/json' HOST/viz/knobs -d '%s'", body)
}
