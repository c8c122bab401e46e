package service_test

// access is what a step touched of what strands share. Two steps that follow one another
// can be swapped, with the same outcome, unless one of them wrote what the other one read or
// wrote. A call that changes nothing only reads, whatever its name is.
type access map[string]*touch

// touch is what was touched of one space, such as the tags of a repository.
type touch struct {
	read, wrote bool            // anything at all
	readAll     bool            // the whole space, also what was not there
	wroteAll    bool            // more of it than can be told
	items       map[string]bool // by name: whether it was written
}

func newAccess() access { return make(access) }

func (a access) of(space string) *touch {
	if a[space] == nil {
		a[space] = &touch{items: make(map[string]bool)}
	}
	return a[space]
}

// read notes that a step depends on an item of a space; "" is all of them.
func (s *strand) read(space, item string) {
	if s == nil {
		return
	}
	t := s.touched.of(space)
	t.read = true
	if item == "" {
		t.readAll = true
	} else if !t.items[item] {
		t.items[item] = false
	}
}

// write notes that a step changed an item of a space, or anything in it where item is "".
func (s *strand) write(space, item string) {
	if s == nil {
		return
	}
	t := s.touched.of(space)
	t.wrote = true
	if item == "" {
		t.wroteAll = true
	} else {
		t.items[item] = true
	}
}

// readOrWrite notes a call that may have changed an item.
func (s *strand) readOrWrite(space, item string, changed bool) {
	if changed {
		s.write(space, item)
	} else {
		s.read(space, item)
	}
}

// conflicts reports whether two steps cannot be swapped.
func (a access) conflicts(b access) bool {
	if a[everything] != nil && b.writes() || b[everything] != nil && a.writes() {
		return true
	}
	for space, t := range a {
		other := b[space]
		if other == nil || !t.wrote && !other.wrote {
			continue
		}
		if t.wroteAll || other.wroteAll || t.wrote && other.readAll || other.wrote && t.readAll {
			return true
		}
		for item, wrote := range t.items {
			if otherWrote, ok := other.items[item]; ok && (wrote || otherWrote) {
				return true
			}
		}
	}
	return false
}

// everything is the space of what reads all that there is.
const everything = "everything"

// writes reports whether a step changed anything.
func (a access) writes() bool {
	for _, t := range a {
		if t.wrote {
			return true
		}
	}
	return false
}

// readEverything notes that a step depends on all that there is.
func (s *strand) readEverything() {
	if s != nil {
		s.touched.of(everything).readAll = true
	}
}
