package blob

import (
	"context"
	"errors"
	"fmt"
	"io"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Append appends bytes after those that count, and hashes them.
func (u *Uploads) Append(ctx context.Context, owner storage.UploadOwner, id string, offset int64, r io.Reader) (n int64, err error) {
	state, err := u.states.Upload(ctx, owner, id)
	if err != nil {
		return 0, err
	}
	if state.Offset != offset {
		return state.Offset, registry.Errorf(registry.CodeConflict,
			"upload %s: it has %d bytes, so a chunk cannot begin at %d; continue at the end", id, state.Offset, offset)
	}
	s, err := u.open(ctx, state)
	if err != nil {
		return offset, u.interpretError("append to", id, err)
	}
	defer func() {
		if closed := s.file.Close(); err == nil {
			err = u.interpretError("append to", id, closed)
		}
	}()
	if err := s.claim(ctx); err != nil {
		return offset, u.interpretError("append to", id, err)
	}
	source := &source{ctx: ctx, r: r}
	err = s.write(ctx, source)
	saveCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	err = errors.Join(s.save(saveCtx, false), err)
	if source.err != nil {
		return s.state.Offset, fmt.Errorf("read what to append to upload %s: %w", id, err) // has its own code
	}
	return s.state.Offset, u.interpretError("append to", id, err)
}
