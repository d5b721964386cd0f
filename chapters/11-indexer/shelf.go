package indexer

// entry is one stored object.
type entry struct {
	key string
	obj any // nil if the place is free
}

// place says where an entry stands on its shelf. It has four bytes because every index holds one for every object, and
// a set of them takes half the memory of a set of pointers.
type place uint32

// shelf holds the entries of a store in one row, in no order, and knows where each stands. An entry keeps its place for
// as long as it is stored, so an update that changes no index value is one assignment, and a lookup by index needs no
// second lookup by key. The shelf has no lock of its own.
//
//	items    "default/a" ─► 0   "system/c" ─► 2
//	entries  [ default/a ][     ][ system/c ]
//	free     1
type shelf struct {
	items   map[string]place
	entries []entry // never shorter than it once was, until a Replace
	free    []place // places of entries that were removed
}

// newShelf returns a shelf of what txns, all of them updates, store. Of two with the same key the later one counts.
func newShelf(txns []Transaction) shelf {
	s := shelf{items: make(map[string]place, len(txns)), entries: make([]entry, len(txns))}
	for i := range txns {
		s.entries[i] = entry{key: txns[i].Key, obj: txns[i].Object}
		s.items[txns[i].Key] = place(i)
	}
	if len(s.items) == len(txns) {
		return s
	}
	for i := range s.entries {
		if at := place(i); s.items[s.entries[at].key] != at {
			s.clear(at)
		}
	}
	return s
}

// get returns the object under key.
func (s *shelf) get(key string) (obj any, exists bool) {
	at, exists := s.items[key]
	if !exists {
		return nil, false
	}
	return s.entries[at].obj, true
}

// insert gives a place to an object whose key is new.
func (s *shelf) insert(key string, obj any) place {
	at := place(len(s.entries))
	if last := len(s.free) - 1; last >= 0 {
		at = s.free[last]
		s.free = s.free[:last]
		s.entries[at] = entry{key: key, obj: obj}
	} else {
		s.entries = append(s.entries, entry{key: key, obj: obj})
	}
	s.items[key] = at
	return at
}

// remove takes the object under key, which stands at the place given, off the shelf.
func (s *shelf) remove(key string, at place) {
	delete(s.items, key)
	s.clear(at)
}

func (s *shelf) clear(at place) {
	s.entries[at] = entry{} // let go of the object
	s.free = append(s.free, at)
}

// list returns all objects.
func (s *shelf) list() []any {
	list := make([]any, 0, len(s.items))
	for i := range s.entries {
		if obj := s.entries[i].obj; obj != nil {
			list = append(list, obj)
		}
	}
	return list
}

// objects returns the objects at the places given.
func (s *shelf) objects(places set) []any {
	list := make([]any, 0, len(places))
	for at := range places {
		list = append(list, s.entries[at].obj)
	}
	return list
}
