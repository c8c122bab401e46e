package blob

import (
	"crypto/sha256"
	"hash"
	"sync"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
)

// maxSums bounds what uploads that nobody finishes keep in memory.
const maxSums = 4096

// sums is the sha256 of what uploads of this process have so far, by path, so that a
// finished upload need not be read again. A loss costs time and no more. The zero sums
// is ready for use.
type sums struct {
	mu sync.Mutex
	of map[string]sum
}

// sum is the hash of the first size bytes.
type sum struct {
	hash hash.Hash
	size int64
}

// take removes and gives the hash of the first size bytes of path, if it is known.
func (s *sums) take(path string, size int64) (hash.Hash, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.of[path]
	delete(s.of, path)
	if ok && known.size == size {
		return known.hash, true
	}
	return sha256.New(), size == 0
}

// put remembers a hash, in place of some other one where there are too many.
func (s *sums) put(path string, hash hash.Hash, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = make(map[string]sum)
	}
	for other := range s.of {
		if len(s.of) < maxSums {
			break
		}
		delete(s.of, other)
	}
	s.of[path] = sum{hash, size}
}

// digest gives the digest of the first size bytes of path, if it is known.
func (s *sums) digest(path string, size int64) (registry.Digest, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.of[path]
	if !ok || known.size != size {
		return "", false
	}
	return digest.NewDigest(digest.SHA256, known.hash), true
}

func (s *sums) forget(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, path)
}
