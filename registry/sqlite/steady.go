package sqlite

import "sync"

// Together they bound the memory: 8,192 rows, of which a pusher can make each 4 KiB.
const (
	steadyEntries = 8 << 10
	steadyBytes   = 4 << 10
)

// steady remembers what was read, as long as nobody commits: what is asked for again and
// again, by clients that pull and resolve, is read once between two commits.
type steady struct {
	index *walIndex

	mu    sync.Mutex
	at    mark
	known map[any]any
}

func newSteady(path string) *steady {
	return &steady{index: newWALIndex(path), known: map[any]any{}}
}

// recall gives what read gave before for the same key, if nothing was committed since, and
// else what it gives now. No two queries have keys of one type. The mark is taken before:
// a commit while read is at work makes what it gives be read again.
func recall[K comparable, V any](s *steady, key K, read func() (V, error)) (V, error) {
	at, ok := s.index.mark()
	if !ok {
		return read()
	}
	if v, ok := s.get(at, key); ok {
		return v.(V), nil
	}
	v, err := read()
	if err == nil && !isLarge(v) {
		s.put(at, key, v)
	}
	return v, err
}

func (s *steady) get(at mark, key any) (any, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at != at {
		return nil, false
	}
	v, ok := s.known[key]
	return v, ok
}

func (s *steady) put(at mark, key, v any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at != at || len(s.known) >= steadyEntries {
		clear(s.known)
		s.at = at
	}
	s.known[key] = v
}

// isLarge reports whether a row is too large to keep. Only annotations have no bound of
// their own.
func isLarge(v any) bool {
	m, ok := v.(recorded)
	return ok && m.bytes > steadyBytes
}
