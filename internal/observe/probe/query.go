package probe

import (
	"slices"
	"strings"
)

// Query says which records are meant: those that have all that it names. The zero Query means every record. Resource,
// subject, type and fields are patterns: alternatives with a bar between them, in which * stands for any text. The page
// has it a second time (viz/log/query.js).
type Query struct {
	Points   []Point `json:"points,omitempty"` // any of them
	Station  Station `json:"station,omitempty"`
	Resource string  `json:"resource,omitempty"`
	Subject  string  `json:"subject,omitempty"`
	Type     string  `json:"type,omitempty"`
	Key      string  `json:"key,omitempty"` // in either half's form
	RV       uint64  `json:"rv,omitempty,string"`
	// Fields are numbers and texts by name. A record that has none of a name has the text "" there.
	Fields map[Field]string `json:"fields,omitempty"`
	From   uint64           `json:"from,omitempty"` // records in [From, To); 0: from the first one
	To     uint64           `json:"to,omitempty"`   // 0: to the last one
}

// Matches reports whether a record is meant.
func (q *Query) Matches(r *Record) bool {
	if len(q.Points) > 0 && !slices.Contains(q.Points, r.Point) || r.Seq < q.From || q.To > 0 && r.Seq >= q.To ||
		q.RV != 0 && q.RV != r.RV || q.Station != "" && q.Station != r.Point.Info().Station {
		return false
	}
	for name, pattern := range q.Fields {
		if !Like(pattern, r.Field(name)) {
			return false
		}
	}
	return (q.Resource == "" || Like(q.Resource, r.Resource)) && (q.Subject == "" || Like(q.Subject, r.Subject)) &&
		(q.Type == "" || Like(q.Type, r.Type)) && (q.Key == "" || ObjectKey(q.Key) == ObjectKey(r.Key))
}

// Like reports whether a text is one of the alternatives of a pattern.
func Like(pattern, text string) bool {
	for each := range strings.SplitSeq(pattern, "|") {
		if like(each, text) {
			return true
		}
	}
	return pattern == text
}

// like compares with one alternative. A * alone stands for any text but none.
func like(pattern, text string) bool {
	if pattern == "*" {
		return text != ""
	}
	before, rest, more := strings.Cut(pattern, "*")
	if !more {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, before)
	for ok && more {
		var part string
		part, rest, more = strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(text, part)
		}
		_, text, ok = strings.Cut(text, part)
	}
	return ok
}
