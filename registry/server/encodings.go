package server

import (
	"hash/maphash"
	"slices"
	"strconv"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/lru"
)

// encodingBytes limits the memory of an encodings.
const encodingBytes = 4 << 20

// encodings remembers the JSON of resolutions, with its tag and compressed. It decides nothing: the
// registry answers every request, and what is remembered is used only for an answer that is the
// same.
type encodings struct {
	seed  maphash.Seed
	known *lru.Cache[uint64, encoding]
}

// encoding is a resolution and the response that has its JSON.
type encoding struct {
	of       registry.Resolution
	response response
}

func newEncodings() *encodings {
	return &encodings{seed: maphash.MakeSeed(), known: lru.New[uint64, encoding](encodingBytes)}
}

// answer returns a resolution as JSON with status 200. Callers must not change the response's body or
// headers.
func (e *encodings) answer(r registry.Resolution) (*response, error) {
	key := e.key(r)
	if known, ok := e.known.Get(key); ok && sameResolution(known.of, r) {
		return &known.response, nil
	}
	a, err := ok(r)
	if err != nil {
		return nil, err
	}
	a = a.with("Vary", "Accept").sentAgain()
	const times = 4 // the JSON, compressed, and as values
	e.known.Put(key, encoding{r, *a}, times*len(a.body))
	return a, nil
}

// key returns the same number for the same resolution.
func (e *encodings) key(r registry.Resolution) uint64 {
	var h maphash.Hash
	h.SetSeed(e.seed)
	write := func(text string) {
		_, _ = h.WriteString(text) // never fails
		_ = h.WriteByte(0)
	}
	write(r.Ref)
	write(string(r.Release))
	for _, c := range r.Candidates {
		write(strconv.Itoa(len(c.Reasons)))
		for _, reason := range c.Reasons {
			write(reason)
		}
	}
	return h.Sum64()
}

// sameResolution reports whether two resolutions have the same JSON. Engines are never changed, so
// the same one has the same JSON.
func sameResolution(a, b registry.Resolution) bool {
	return a.Engine == b.Engine && a.Ref == b.Ref && a.Release == b.Release && a.Version == b.Version &&
		slices.EqualFunc(a.Candidates, b.Candidates, func(a, b registry.Candidate) bool {
			return a.Engine == b.Engine && a.Label == b.Label && a.Chosen == b.Chosen && slices.Equal(a.Reasons, b.Reasons)
		})
}
