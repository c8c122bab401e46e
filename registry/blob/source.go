package blob

import (
	"context"
	"errors"
	"io"
)

// source is the reader of a Put, tied to its context. It remembers why reading stopped, so that
// an error of the caller is not taken for one of the disk.
type source struct {
	ctx context.Context //nolint:containedctx // belongs to a single Put; a reader cannot be cancelled in another way
	r   io.Reader
	err error
}

// Read reads as r does until the context ends.
func (s *source) Read(p []byte) (int, error) {
	if s.err = s.ctx.Err(); s.err != nil {
		return 0, s.err
	}
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// onlyWriter hides the other methods of a writer. (An *os.File would otherwise offer
// ReadFrom, for which no buffer is used.)
type onlyWriter struct{ io.Writer }
