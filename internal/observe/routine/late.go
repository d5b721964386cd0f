package routine

import (
	"bytes"
	"context"
	"regexp"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// routines are all that run now.
var routines = struct {
	mu   sync.Mutex // guards told; a leaf
	told map[*named]bool
}{told: map[*named]bool{}}

// named is a goroutine with a name. It has been told to end when its context is done.
type named struct {
	ctx  context.Context
	name string
}

// enter notes that a goroutine of that name runs until leave is called.
func enter(ctx context.Context, name string) (leave func()) {
	n := &named{ctx, name}
	routines.mu.Lock()
	defer routines.mu.Unlock()
	routines.told[n] = true
	return func() {
		routines.mu.Lock()
		defer routines.mu.Unlock()
		delete(routines.told, n)
	}
}

// late returns the names of those that run although they have been told to end.
func late() map[string]bool {
	routines.mu.Lock()
	defer routines.mu.Unlock()
	names := map[string]bool{}
	for n := range routines.told {
		if n.ctx.Err() != nil {
			names[n.name] = true
		}
	}
	return names
}

// Late says which goroutines run although they have been told to end, one text for each: "cacher.dispatchEvents in
// cacher.(*Cacher).dispatchEvent at dispatch.go:42". One that itself waits for others is left out. Late takes a
// profile, for which all goroutines stop: it is for a program that does not end.
func Late() []string {
	var profile bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&profile, 1) // a Buffer takes all
	var found []string
	names := late()
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		// Goroutines inherit labels, so a label alone proves nothing: the stack has to begin in one.
		name := nameOf(stack)
		if !names[name] || !strings.Contains(stack, "routine.Do+") || strings.Contains(stack, "WaitGroup).Wait+") {
			continue
		}
		if text := name + " in " + place(stack); !slices.Contains(found, text) {
			found = append(found, text)
		}
	}
	return found
}

// nameOf returns the label of one stack of a profile.
func nameOf(stack string) string {
	_, quoted, _ := strings.Cut(stack, `"routine":`)
	quoted, _ = strconv.QuotedPrefix(quoted) // "": it has none
	name, _ := strconv.Unquote(quoted)
	return name
}

// waits are the packages in which a goroutine waits, or computes, for others.
var waits = regexp.MustCompile(`^(runtime|sync|sync/atomic|internal/.*)\.`)

// place returns where a stack of a profile is, outside of waits.
func place(stack string) string {
	for line := range strings.Lines(stack) {
		// "#", address, function+offset, file:line; more than one tab may stand between two
		fields := strings.FieldsFunc(strings.TrimSpace(line), func(r rune) bool { return r == '\t' })
		if len(fields) < 4 || waits.MatchString(fields[2]) {
			continue
		}
		function, _, _ := strings.Cut(fields[2], "+")
		colon := strings.LastIndexByte(fields[3], ':')
		number, _ := strconv.Atoi(fields[3][colon+1:]) // a profile has numbers
		function, line := Place(runtime.Frame{Function: function, File: fields[3][:colon], Line: number})
		return function + " at " + line
	}
	return "the runtime"
}
