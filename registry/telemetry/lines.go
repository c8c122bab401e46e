package telemetry

import (
	"io"
	"sync"

	"mlpromote.dev/mlpromote/registry/internal/rounds"
)

// lines writes the lines of a log. Those of requests at the same time share a write.
type lines struct {
	to     io.Writer
	rounds rounds.Group[error]

	mu    sync.Mutex
	ready []byte // not written yet
	spare []byte // for the lines after these
}

// Write keeps a line for flush.
func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ready = append(l.ready, line...)
	return len(line), nil
}

// flush returns after every line that was kept before the call has been written.
func (l *lines) flush() error {
	return l.rounds.Do(func() error {
		l.mu.Lock()
		ready := l.ready
		l.ready, l.spare = l.spare[:0], nil
		l.mu.Unlock()
		_, err := l.to.Write(ready)
		l.mu.Lock()
		l.spare = ready
		l.mu.Unlock()
		return err
	})
}
