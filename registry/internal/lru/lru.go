// Package lru keeps values up to a number of bytes.
package lru

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Cache keeps what was used last, up to a number of bytes. Make one with [New]. It is safe
// for concurrent use.
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

// New makes one of at most limit bytes. One of none keeps nothing.
func New[K comparable, V any](limit int) *Cache[K, V] {
	c := &Cache[K, V]{limit: limit}
	// An entry has a byte at least, so it is the bytes that limit. The only error is a limit under 1.
	c.known, _ = simplelru.NewLRU(max(limit, 1), func(_ K, gone sized[V]) { c.bytes -= gone.bytes })
	return c
}

// Get gives the value of a key, if it is kept.
func (c *Cache[K, V]) Get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.known.Get(key)
	return v.value, ok
}

// Put keeps a value of about so many bytes in place of the one that the key had, unless it
// alone is more than the limit.
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

// Bytes is about how many bytes are kept.
func (c *Cache[K, V]) Bytes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}
