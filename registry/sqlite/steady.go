package sqlite

import (
	"context"
	"sync"
	"sync/atomic"

	"mlpromote.dev/mlpromote/registry/storage"
)

// Together they bound the memory: 8,192 rows, of which a client that pushes can make each 4 KiB.
const (
	steadyEntries = 8 << 10
	steadyBytes   = 4 << 10
)

// steady keeps rows in memory that clients which pull and resolve ask for again and again. It
// forgets all of them as soon as anybody commits.
type steady struct {
	versions versions
	commits  atomic.Int64 // of pushes by this process
	regarded atomic.Int64 // the commits at the last lookup

	mu    sync.Mutex
	at    version // of known
	known map[any]any
}

func newSteady() *steady { return &steady{known: map[any]any{}} }

// recall returns what read returned before for the same key, if no commit came since, and
// otherwise what read returns now. Each query has a type of key of its own. The version is asked
// for first: if somebody commits while read runs, the next call reads again. If this process
// committed since the last lookup, nothing that is remembered counts, so recall does not ask.
func recall[K comparable, V any](ctx context.Context, s *steady, key K, read func() (V, error)) (V, error) {
	var at version
	var isNewest bool
	if !s.committed() {
		var ok bool
		if at, isNewest, ok = s.version(ctx); !ok {
			return read()
		}
		if v, ok := s.get(at, key); ok {
			return v.(V), nil
		}
	}
	v, err := read()
	if i := storage.InstantOf(ctx); i != nil {
		i.Forget() // a remembered row could be older than what was read now
	}
	if err == nil && isNewest && !isLarge(v) {
		s.put(at, key, v)
	}
	return v, err
}

// committed reports whether this process committed a push since the last lookup. It saves asking
// for a version that is new for certain. What is remembered never depends on it.
func (s *steady) committed() bool {
	commits := s.commits.Load()
	return s.regarded.Swap(commits) != commits
}

// version returns the version for a read, and whether what is read may be remembered for it. A
// request at one instant asks SQLite once.
func (s *steady) version(ctx context.Context) (at version, isNewest, ok bool) {
	instant := storage.InstantOf(ctx)
	if instant == nil {
		at, ok = s.versions.now(ctx)
		return at, true, ok
	}
	state, asked, ok := instant.Choose(func() (any, bool) { return s.versions.now(ctx) })
	at, isOurs := state.(version)
	if !ok || !isOurs {
		return version{}, false, false
	}
	return at, asked || s.isAt(at), true
}

// isAt reports whether rows of this version are remembered. Nothing newer was asked for then.
func (s *steady) isAt(at version) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at == at
}

func (s *steady) get(at version, key any) (any, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at != at {
		return nil, false
	}
	v, ok := s.known[key]
	return v, ok
}

func (s *steady) put(at version, key, v any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at != at || len(s.known) >= steadyEntries {
		clear(s.known)
		s.at = at
	}
	s.known[key] = v
}

// isLarge reports whether a row is too large to keep. Only annotations and documents have no
// bound of their own.
func isLarge(v any) bool {
	switch v := v.(type) {
	case recorded:
		return v.bytes > steadyBytes
	case document:
		return len(v.body) > steadyBytes
	}
	return false
}

// recorded is the record of a manifest, and whether it is marked.
type recorded struct {
	storage.Manifest
	condemned bool
	bytes     int // size of its annotations
}

// document is the body of a row, or that there is no row.
type document struct {
	body  string
	found bool
}
