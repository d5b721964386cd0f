package source

import (
	"fmt"
	"strings"
)

// Lines are whole lines of a file, beginning with line From, without the last line's end.
type Lines struct {
	From int
	Src  string
}

// To returns the number of the last line.
func (l Lines) To() int { return l.From + strings.Count(l.Src, "\n") }

// Fields returns the lines of a struct with nothing but the named fields and their comments: its first line, each run
// of fields in the file's order, and its last line. A name that is not a field is an error.
func (d *Decl) Fields(names []string) ([]Lines, error) {
	all := strings.Split(d.Src, "\n")
	keep := make([]bool, len(all))
	keep[d.Line()-d.From], keep[len(all)-1] = true, true
	pkg := d.tree.Holding(d.File.Path)
	for _, name := range names {
		field, err := pkg.Find(d.Symbol+"."+name, "")
		if err != nil {
			return nil, err
		}
		if field.From < d.From || field.To > d.To {
			return nil, fmt.Errorf("%s.%s is not in the struct", d.Symbol, name)
		}
		for line := field.From; line <= field.To; line++ {
			keep[line-d.From] = true
		}
	}
	var parts []Lines
	for i := range all {
		switch {
		case !keep[i]:
		case i > 0 && keep[i-1]:
			parts[len(parts)-1].Src += "\n" + all[i]
		default:
			parts = append(parts, Lines{d.From + i, all[i]})
		}
	}
	return parts, nil
}
