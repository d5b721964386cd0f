package rules

// maxSettled is how many settled things of a kind are remembered: long enough that a slow watcher still meets them.
const maxSettled = 1 << 12

// settled holds the newest maxSettled of what was added to it. The zero value is empty.
type settled struct {
	keys []string
	next int // where the oldest one lies, once all places are taken
}

// add remembers a key, and returns the one that is forgotten for it, "" if none is.
func (s *settled) add(key string) (forgotten string) {
	if len(s.keys) < maxSettled {
		s.keys = append(s.keys, key)
		return ""
	}
	forgotten, s.keys[s.next] = s.keys[s.next], key
	s.next = (s.next + 1) % maxSettled
	return forgotten
}
