// Package lru provides a cache limited by bytes.
package lru

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Cache keeps the most recently used values, up to a number of bytes. Create one with [New]. It
// is safe for concurrent use.
type Cache[K comparable, V any] struct {
	mu    sync.Mutex
	known *simplelru.LRU[K, sized[V]]
	bytes int
	limit int
}

type sized[V any] struct {
	value V
	bytes int
}

// New returns a cache of at most limit bytes. With a limit of 0 it keeps nothing.
func New[K comparable, V any](limit int) *Cache[K, V] {
	c := &Cache[K, V]{limit: limit}
	// An entry has at least a byte, so the limit in bytes is reached first. NewLRU fails only for
	// a limit under 1.
	c.known, _ = simplelru.NewLRU(max(limit, 1), func(_ K, gone sized[V]) { c.bytes -= gone.bytes })
	return c
}

// Get returns the value of a key, if it is cached.
func (c *Cache[K, V]) Get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.known.Get(key)
	return v.value, ok
}

// Put caches a value of about the given size in bytes and replaces an earlier one of the key.
// It does not cache values larger than the limit.
func (c *Cache[K, V]) Put(key K, value V, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known.Remove(key)
	if bytes = max(bytes, 1); bytes > c.limit {
		return
	}
	c.known.Add(key, sized[V]{value, bytes})
	for c.bytes += bytes; c.bytes > c.limit; {
		c.known.RemoveOldest()
	}
}

// Bytes returns the approximate size of the cached values.
func (c *Cache[K, V]) Bytes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}
