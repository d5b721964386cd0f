package stage

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/a-h/templ"
)

// yours lists the stations that the reader has built. `lab path` writes the list, in the reader's working copy.
//
//go:embed yours.txt
var yours string

// station returns the attributes of a station's element.
func station(name, label string) templ.Attributes {
	return templ.Attributes{"class": "station", "data-station": name, "tabindex": "0", "role": "group",
		"aria-label": label, "data-yours": slices.Contains(strings.Fields(yours), name)}
}
