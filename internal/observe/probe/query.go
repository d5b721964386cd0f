package probe

import (
	"slices"
	"strings"
)

// Query selects records: those that match every field that it sets. The zero Query selects every record. Resource,
// subject, type and fields are patterns: alternatives separated by bars, in which * matches any text. The page
// implements the same queries (viz/log/query.js).
type Query struct {
	Points   []Point `json:"points,omitempty"` // any of these points
	Station  Station `json:"station,omitempty"`
	Resource string  `json:"resource,omitempty"`
	Subject  string  `json:"subject,omitempty"`
	Type     string  `json:"type,omitempty"`
	Key      string  `json:"key,omitempty"` // in the form of either half
	RV       uint64  `json:"rv,omitempty,string"`
	// Fields are patterns for numbers and texts, by name. A number or text that a record lacks counts as "".
	Fields map[Field]string `json:"fields,omitempty"`
}

// Matches reports whether the query selects a record.
func (q *Query) Matches(r *Record) bool {
	if len(q.Points) > 0 && !slices.Contains(q.Points, r.Point) ||
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

// Like reports whether a text equals a pattern or matches one of its alternatives; * alone matches all but "".
func Like(pattern, text string) bool {
	for each := range strings.SplitSeq(pattern, "|") {
		if like(each, text) {
			return true
		}
	}
	return pattern == text
}

// like compares a text with one alternative.
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
