package feed

import (
	"sync"

	"mlpromote.dev/mlpromote/registry"
)

// maxStreams is the maximum number of open event streams. A caller may use at most half of
// those that others leave, so that one caller cannot block the rest.
const maxStreams = 2000

// Streams counts open streams by caller.
type Streams struct {
	mu   sync.Mutex
	all  int
	open map[string]int
}

// NewStreams returns a count of no streams.
func NewStreams() *Streams { return &Streams{open: make(map[string]int)} }

// Add counts a stream of a caller until closed is called, or refuses it. Errors: CodeUnavailable.
func (s *Streams) Add(caller string) (closed func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.open[caller]
	if most := (maxStreams - s.all + own) / 2; own >= most {
		return nil, registry.Errorf(registry.CodeUnavailable,
			"%d streams of events are open, %d of them yours: close some, or try again later", s.all, own)
	}
	s.all++
	s.open[caller]++
	return func() { s.remove(caller) }, nil
}

func (s *Streams) remove(caller string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.open[caller]--; s.open[caller] == 0 {
		delete(s.open, caller)
	}
}
