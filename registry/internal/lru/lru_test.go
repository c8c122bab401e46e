package lru_test

import (
	"testing"

	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/registry/internal/lru"
)

// Whatever is put, what is kept is within the limit, is what was put last for its key, and
// what was used last goes last.
func TestCache(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(0, 20).Draw(t, "limit")
		c := lru.New[int, int](limit)
		last := map[int]int{}
		for n := range rapid.IntRange(0, 50).Draw(t, "puts") {
			key, size := rapid.IntRange(0, 5).Draw(t, "key"), rapid.IntRange(0, 25).Draw(t, "size")
			c.Put(key, n, size)
			last[key] = n
			v, ok := c.Get(key)
			if want := max(size, 1) <= limit; ok != want || ok && v != n {
				t.Fatalf("%d of %d bytes, limit %d: got %d, %v", n, size, limit, v, ok)
			}
			if c.Bytes() > limit {
				t.Fatalf("%d bytes are kept, limit %d", c.Bytes(), limit)
			}
			for k, want := range last {
				if v, ok := c.Get(k); ok && v != want {
					t.Fatalf("key %d has %d, want %d", k, v, want)
				}
			}
		}
	})
}

func TestOldestGoes(t *testing.T) {
	t.Parallel()
	c := lru.New[string, bool](2)
	c.Put("a", true, 1)
	c.Put("b", true, 1)
	c.Get("a")
	c.Put("c", true, 1)
	for key, want := range map[string]bool{"a": true, "b": false, "c": true} {
		if _, ok := c.Get(key); ok != want {
			t.Errorf("%s is kept: %v, want %v", key, ok, want)
		}
	}
}
